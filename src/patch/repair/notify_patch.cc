#include <fmt/format.h>

#include <algorithm>

#include "patch/repair/repair_sources.h"
#include "patch/repair/syntax.h"
#include "util/text.h"

namespace unflake {
namespace {

// What the code signals once the place was passed.
struct Signal {
  enum class Kind { none, condition, pthread_condition, promise, latch };
  Kind kind = Kind::none;
  CXCursor variable;
  std::string text;
};

Signal::Kind kind_of_signal(CXCursor call) {
  using Kind = Signal::Kind;
  const std::string name = spelling(call);
  if (name == "pthread_cond_signal" || name == "pthread_cond_broadcast")
    return Kind::pthread_condition;
  const CXCursor object = object_of(call);
  if (is_null(object)) return Kind::none;
  const std::string type = type_name(object);
  if (type.starts_with("std::condition_variable") && name.starts_with("notify_"))
    return Kind::condition;
  if (type.starts_with("std::promise<") && name.starts_with("set_value")) return Kind::promise;
  if (type == "std::latch" && name.ends_with("count_down")) return Kind::latch;
  return Kind::none;
}

// `&mutex` -> `mutex`
CXCursor pointed_to(CXCursor expression) {
  const CXCursor inside = unwrapped(expression);
  const bool is_address = clang().getCursorKind(inside) == CXCursor_UnaryOperator &&
                          clang().getCursorUnaryOperatorKind(inside) == CXUnaryOperator_AddrOf;
  return is_address ? operands(inside)[0] : inside;
}

class NotifyDraft {
 public:
  NotifyDraft(const PatchRequest& request, RepairSources& sources)
      : request_(request), sources_(sources) {}

  Result<DraftPatch> write() {
    if (request_.hand_overs.size() > 1 ||
        (!request_.hand_overs.empty() &&
         (request_.hand_overs[0].count > 1 || request_.hand_overs[0].ahead)))
      return usage_error("several things are waited for");
    auto places = places_of(request_, sources_);
    if (!places) return places.error();
    places_ = *places;
    if (places_.critical.unit != places_.barrier.unit)
      return usage_error("the two places are compiled apart");
    if (auto found = find_points(); !found) return found.error();
    const auto wait = wait_statement();
    if (!wait) return wait.error();
    draft_.idiom = RepairIdiom::notify;
    for (SourceEdit& edit : insertion(unit(), point_, *wait))
      draft_.edits.push_back(std::move(edit));
    for (SourceEdit& edit : sleep_removal(request_, sources_, {point_}, draft_.cautions))
      draft_.edits.push_back(std::move(edit));
    draft_.what = fmt::format("{} waits for `{}`, which is signalled once {} was passed",
                              short_place(places_.barrier.file, places_.barrier.line),
                              printable(signal_.text),
                              short_place(places_.critical.file, places_.critical.line));
    return std::move(draft_);
  }

 private:
  using Kind = Signal::Kind;
  const SourceUnit& unit() const { return *places_.barrier.unit; }

  Result<void> find_points() {
    auto critical = statement_at(unit(), places_.critical.file, places_.critical.line,
                                 places_.critical.function);
    if (!critical) return critical.error();
    critical_ = *critical;
    auto point =
        point_before(unit(), places_.barrier.file, places_.barrier.line, places_.barrier.function);
    if (!point) return point.error();
    point_ = *point;
    signal_ = find_signal();
    if (signal_.kind == Kind::none)
      return usage_error("nothing is signalled after it",
                         short_place(places_.critical.file, places_.critical.line));
    if (!is_visible_at(unit(), signal_.variable, point_))
      return usage_error(fmt::format("`{}` is not known there", printable(signal_.text)),
                         short_place(point_.file, point_.line));
    if (is_same_body(critical_, point_)) return usage_error("one function cannot wait for itself");
    return {};
  }

  // The first one after the critical statement, in its function.
  Signal find_signal() const {
    Signal found;
    walk(critical_.body.owner, [&](CXCursor cursor) {
      if (found.kind != Kind::none || clang().getCursorKind(cursor) != CXCursor_CallExpr) return;
      const Kind kind = kind_of_signal(cursor);
      const Spot begin = extent_of(cursor).begin;
      if (kind == Kind::none || begin.file != critical_.file ||
          begin.offset < critical_.statement.begin)
        return;
      const CXCursor object =
          kind == Kind::pthread_condition ? pointed_to(arguments(cursor)[0]) : object_of(cursor);
      const CXCursor variable = variable_named_by(object);
      if (!is_null(variable)) found = {kind, variable, source_text(unit(), unwrapped(object))};
    });
    return found;
  }

  Result<std::string> wait_statement() {
    switch (signal_.kind) {
      case Kind::latch:
        return signal_.text + ".wait();";
      case Kind::promise:
        return wait_for_promise();
      default:
        return wait_for_condition();
    }
  }

  std::string checked(const std::string& condition) const {
    return check_.empty() ? condition + ";" : fmt::format("{}({});", check_, condition);
  }

  // The future that belongs to it.
  Result<std::string> wait_for_promise() {
    find_check();
    std::string future;
    for (const CXCursor declaration : unit().top_level(point_.file))
      walk(declaration, [&](CXCursor cursor) {
        if (clang().getCursorKind(cursor) != CXCursor_VarDecl ||
            !type_name(cursor).starts_with("std::future<") ||
            extent_of(cursor).begin.offset > point_.statement.begin ||
            !is_visible_at(unit(), cursor, point_))
          return;
        const auto source = first_below(cursor, [&](CXCursor each) {
          return clang().getCursorKind(each) == CXCursor_CallExpr &&
                 spelling(each) == "get_future" &&
                 identity(variable_named_by(object_of(each))) == identity(signal_.variable);
        });
        if (source) future = spelling(cursor);
      });
    if (future.empty()) return usage_error("no future of the promise is known there");
    signal_.text = future;
    return checked(
        fmt::format("{}.wait_for(std::chrono::seconds(10)) == std::future_status::ready", future));
  }

  Result<std::string> wait_for_condition() {
    find_check();
    const std::string mutex = find_mutex();
    if (mutex.empty())
      return usage_error(fmt::format("the mutex of `{}` is not known", printable(signal_.text)));
    const std::string wanted = predicate();
    if (wanted.empty())
      return usage_error("what the condition variable stands for is not known",
                         short_place(places_.critical.file, places_.critical.line));
    if (signal_.kind == Kind::pthread_condition) return wait_in_c(mutex, wanted);
    const std::string step = indent_step(unit().text_of(point_.file));
    const std::string wait = fmt::format(
        "{}.wait_for(lock, std::chrono::seconds(10), [&] {{ return {}; }})", signal_.text, wanted);
    return fmt::format("{{\n{0}std::unique_lock<std::mutex> lock({1});\n{0}{2}\n}}", step, mutex,
                       checked(wait));
  }

  std::string wait_in_c(const std::string& mutex, const std::string& wanted) {
    const std::string step = indent_step(unit().text_of(point_.file));
    for (SourceEdit& edit : include_edits(unit(), point_.file, "<time.h>"))
      draft_.edits.push_back(std::move(edit));
    return fmt::format(
        "pthread_mutex_lock(&{0});\n"
        "for (struct timespec end = {{time(NULL) + 10, 0}}; !({1});)\n"
        "{3}if (pthread_cond_timedwait(&{2}, &{0}, &end) != 0) break;\n"
        "pthread_mutex_unlock(&{0});",
        mutex, wanted, signal_.text, step);
  }

  // Of a lock in the function that signals.
  std::string find_mutex() const {
    std::string found;
    walk(critical_.body.owner, [&](CXCursor cursor) {
      if (!found.empty()) return;
      const bool is_c_lock = clang().getCursorKind(cursor) == CXCursor_CallExpr &&
                             spelling(cursor) == "pthread_mutex_lock";
      if (is_c_lock) found = name_of(pointed_to(arguments(cursor)[0]));
      if (clang().getCursorKind(cursor) != CXCursor_VarDecl) return;
      const std::string type = type_name(cursor);
      const bool is_lock = type.starts_with("std::lock_guard<") ||
                           type.starts_with("std::unique_lock<") ||
                           type.starts_with("std::scoped_lock<");
      if (!is_lock) return;
      const auto named = first_below(cursor, [&](CXCursor each) {
        return type_name(each) == "std::mutex" && !is_null(variable_named_by(each)) &&
               (clang().getCursorKind(each) == CXCursor_DeclRefExpr ||
                clang().getCursorKind(each) == CXCursor_MemberRefExpr);
      });
      if (named) found = name_of(*named);
    });
    return found;
  }

  std::string name_of(CXCursor expression) const {
    const CXCursor variable = variable_named_by(expression);
    return is_visible_at(unit(), variable, point_) ? source_text(unit(), unwrapped(expression))
                                                   : "";
  }

  void find_check() {
    const auto failing = sources_.place(request_.failure.file, request_.failure.line);
    if (!failing) return;
    const auto assertion = assertion_at(*failing);
    if (!assertion || !is_same_body(assertion->point, point_)) return;
    check_ = assertion->check;
    asserted_ = assertion->condition;
  }

  // What the critical statement makes true, else what is asserted where the test waits, if that can
  // be read under the lock: functions of the project may take it themselves.
  std::string predicate() const {
    const CXCursor statement = unwrapped(critical_.statement.cursor);
    const auto sides = operands(statement);
    const bool assigns = clang().getCursorKind(statement) == CXCursor_BinaryOperator &&
                         clang().getCursorBinaryOperatorKind(statement) == CXBinaryOperator_Assign;
    if (assigns || (clang().getCursorKind(statement) == CXCursor_CallExpr &&
                    spelling(statement) == "operator=")) {
      const auto parts = assigns ? sides : arguments(statement);
      const std::string value =
          parts.size() == 2 ? std::string(trim(source_text(unit(), parts[1]))) : "";
      const std::string name = parts.size() == 2 ? name_of(parts[0]) : "";
      if (!name.empty() && (value == "true" || value == "1")) return name;
    }
    const bool calls_nothing = asserted_.find('(') == std::string::npos;
    if (!asserted_.empty() && calls_nothing) return asserted_;
    return pushed(statement);
  }

  std::string pushed(CXCursor statement) const {
    const std::string name = spelling(statement);
    if (clang().getCursorKind(statement) != CXCursor_CallExpr ||
        (name != "push_back" && name != "emplace_back" && name != "push" && name != "emplace"))
      return "";
    const CXCursor object = object_of(statement);
    const std::string container = is_null(object) ? "" : name_of(object);
    return container.empty() ? "" : fmt::format("!{}.empty()", container);
  }

  const PatchRequest& request_;
  RepairSources& sources_;
  HandOverPlaces places_;
  InsertionPoint critical_, point_;
  Signal signal_;
  std::string check_, asserted_;
  DraftPatch draft_;
};

}  // namespace

Result<DraftPatch> draft_notify(const PatchRequest& request, RepairSources& sources) {
  return NotifyDraft(request, sources).write();
}

}  // namespace unflake
