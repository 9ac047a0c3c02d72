#include <fmt/format.h>

#include <algorithm>

#include "patch/repair/repair_sources.h"
#include "patch/repair/syntax.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

// What was started and can be waited for.
struct Handle {
  enum class Kind { none, thread, threads, future, pthread, process };
  Kind kind = Kind::none;
  std::string text;  // how the code calls it
  CXCursor variable;
};

Handle::Kind kind_of_type(const std::string& type) {
  using Kind = Handle::Kind;
  if (type == "std::thread" || type == "std::jthread") return Kind::thread;
  if (type.starts_with("std::future<") || type.starts_with("std::shared_future<"))
    return Kind::future;
  if (type.starts_with("std::vector<std::thread") || type.starts_with("std::vector<std::jthread") ||
      type.starts_with("std::array<std::thread") || type.starts_with("std::deque<std::thread") ||
      type.starts_with("std::list<std::thread"))
    return Kind::threads;
  return Kind::none;
}

bool is_call_of(CXCursor cursor, std::string_view name) {
  return clang().getCursorKind(cursor) == CXCursor_CallExpr && spelling(cursor) == name;
}

bool calls(CXCursor cursor, std::string_view name) {
  return first_below(cursor, [&](CXCursor each) { return is_call_of(each, name); }).has_value();
}

class HandleFinder {
 public:
  HandleFinder(const SourceUnit& unit, const std::string& file, int line)
      : unit_(unit), file_(file), line_(line) {}

  // The nearest one around the line.
  Handle find() const {
    const CodeAtLine code = code_at(unit_, file_, line_);
    for (auto each = code.statements.rbegin(); each != code.statements.rend(); ++each)
      if (Handle found = in_statement(each->cursor); found.kind != Handle::Kind::none) return found;
    return in_initialisers();
  }

 private:
  Handle made(Handle::Kind kind, CXCursor expression) const {
    const CXCursor variable = variable_named_by(expression);
    if (kind == Handle::Kind::none || is_null(variable)) return {};
    return {kind, source_text(unit_, unwrapped(expression)), variable};
  }

  Handle in_statement(CXCursor statement) const {
    if (clang().getCursorKind(statement) == CXCursor_DeclStmt)
      for (const CXCursor variable : children(statement))
        if (Handle found = declared(variable); found.kind != Handle::Kind::none) return found;
    const CXCursor expression = unwrapped(statement);
    if (Handle found = assigned(expression); found.kind != Handle::Kind::none) return found;
    if (is_call_of(expression, "emplace_back") || is_call_of(expression, "push_back")) {
      const CXCursor object = object_of(expression);
      if (!is_null(object)) return made(kind_of_type(type_name(object)), object);
    }
    return created(statement);
  }

  static Handle declared(CXCursor variable) {
    if (clang().getCursorKind(variable) != CXCursor_VarDecl) return {};
    const Handle::Kind kind = kind_of_type(type_name(variable));
    // A container of threads is not started where it is declared.
    if (kind != Handle::Kind::none && kind != Handle::Kind::threads)
      return {kind, spelling(variable), variable};
    if (type_name(variable) == "int" && calls(variable, "fork"))
      return {Handle::Kind::process, spelling(variable), variable};
    return {};
  }

  Handle assigned(CXCursor expression) const {
    if (is_call_of(expression, "operator=")) {
      const auto sides = arguments(expression);
      if (!sides.empty()) return made(kind_of_type(type_name(sides[0])), sides[0]);
    }
    const bool assigns = clang().getCursorKind(expression) == CXCursor_BinaryOperator &&
                         clang().getCursorBinaryOperatorKind(expression) == CXBinaryOperator_Assign;
    if (assigns && calls(expression, "fork"))
      return made(Handle::Kind::process, operands(expression)[0]);
    return {};
  }

  Handle created(CXCursor statement) const {
    const auto call =
        first_below(statement, [](CXCursor each) { return is_call_of(each, "pthread_create"); });
    if (!call) return {};
    const auto given = arguments(*call);
    if (given.empty()) return {};
    const CXCursor address = unwrapped(given[0]);
    if (clang().getCursorKind(address) != CXCursor_UnaryOperator) return {};
    return made(Handle::Kind::pthread, operands(address)[0]);
  }

  // `Reader() : starter_([this] { ... }) {}`
  Handle in_initialisers() const {
    Handle found;
    for (const CXCursor declaration : unit_.top_level(file_))
      walk(declaration, [&](CXCursor cursor) {
        if (clang().getCursorKind(cursor) == CXCursor_Constructor && covers(cursor)) {
          CXCursor member = clang().getNullCursor();
          for (const CXCursor part : children(cursor)) {
            if (clang().getCursorKind(part) == CXCursor_MemberRef)
              member = clang().getCursorReferenced(part);
            const bool is_value = is_expression(part) && covers(part) && !is_null(member);
            if (is_value && kind_of_type(type_name(member)) == Handle::Kind::thread)
              found = {Handle::Kind::thread, spelling(member), member};
            if (is_value && type_name(member) == "int" && calls(part, "fork"))
              found = {Handle::Kind::process, spelling(member), member};
          }
        }
      });
    return found;
  }

  bool covers(CXCursor cursor) const {
    const SourceExtent extent = extent_of(cursor);
    return extent.begin.file == file_ && extent.begin.line <= line_ && line_ <= extent.end.line;
  }

  const SourceUnit& unit_;
  const std::string& file_;
  int line_;
};

// `pool.cc:31#2`: where the thread was started.
std::optional<CodeSpot> start_of(const std::string& thread) {
  const std::string place = thread.substr(0, thread.find_first_of("#~"));
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos || colon + 1 == place.size()) return std::nullopt;
  const std::string number = place.substr(colon + 1);
  const bool is_number = number.size() < 8 && std::all_of(number.begin(), number.end(), [](char c) {
                           return c >= '0' && c <= '9';
                         });
  if (!is_number) return std::nullopt;
  return CodeSpot{place.substr(0, colon), std::stoi(number), ""};
}

class JoinDraft {
 public:
  JoinDraft(const PatchRequest& request, RepairSources& sources)
      : request_(request), sources_(sources) {}

  Result<DraftPatch> write() {
    if (request_.hand_overs.size() > 1 ||
        (!request_.hand_overs.empty() && request_.hand_overs[0].ahead))
      return usage_error("several things are waited for");
    auto places = places_of(request_, sources_);
    if (!places) return places.error();
    places_ = *places;
    handle_ = find_handle();
    if (handle_.kind == Handle::Kind::none)
      return usage_error("nothing that could be joined or waited for is known to run it",
                         short_place(places_.critical.file, places_.critical.line));
    auto point =
        point_before(unit(), places_.barrier.file, places_.barrier.line, places_.barrier.function);
    if (!point) return point.error();
    point_ = *point;
    draft_.idiom = RepairIdiom::join;
    if (auto joined =
            is_visible_at(unit(), handle_.variable, point_) ? add_join() : join_by_method();
        !joined)
      return joined.error();
    for (SourceEdit& edit : sleep_removal(request_, sources_, {point_}, draft_.cautions))
      draft_.edits.push_back(std::move(edit));
    draft_.what = fmt::format("{} waits for the end of `{}`, which passes {}",
                              short_place(places_.barrier.file, places_.barrier.line),
                              printable(handle_.text),
                              short_place(places_.critical.file, places_.critical.line));
    return std::move(draft_);
  }

 private:
  using Kind = Handle::Kind;

  const SourceUnit& unit() const { return *places_.barrier.unit; }
  bool is_field() const { return clang().getCursorKind(handle_.variable) == CXCursor_FieldDecl; }

  // By the thread's name, else by what is around the place.
  Handle find_handle() const {
    if (const auto start = start_of(request_.hand_overs[0].critical.thread))
      for (const PatchPlace* place : {&places_.critical, &places_.barrier})
        if (base_name(place->file) == base_name(start->file))
          return HandleFinder(unit(), place->file, start->line).find();
    if (places_.critical.unit != places_.barrier.unit) return {};
    return HandleFinder(unit(), places_.critical.file, places_.critical.line).find();
  }

  Result<void> add_join() {
    if (handle_.kind == Kind::future) return add_wait_for_future();
    std::vector<InsertionPoint> later;
    for (const CXCursor call : calls_in(unit(), places_.barrier.file)) {
      if (!is_join(call)) continue;
      const auto statement = statement_of(unit(), call);
      if (!statement) return cannot_move();
      const bool is_here = is_same_body(*statement, point_);
      if (is_here && statement->statement.begin <= point_.statement.begin)
        return usage_error(
            fmt::format("`{}` is joined before that already", printable(handle_.text)));
      if (is_guarded(*statement)) continue;
      later.push_back(*statement);
    }
    return move_joins(later);
  }

  // `reader.stop();` that the test comes to later, and that joins.
  Result<void> join_by_method() {
    for (const CXCursor call : calls_in(unit(), point_.file)) {
      const auto later = statement_of(unit(), call);
      if (!later || !is_same_body(*later, point_) || !arguments(call).empty() ||
          later->statement.end <= point_.statement.begin || !joins(call) ||
          !is_visible_at(unit(), variable_named_by(object_of(call)), point_))
        continue;
      const std::string text = source_text(unit(), call) + ";";
      if (text_of_statement(*later) == text && !later->statement.is_bare)
        draft_.edits.push_back(removal(unit(), *later));
      else if (!asks_first(call))
        continue;
      handle_.text = source_text(unit(), call);
      insert(text);
      return {};
    }
    return usage_error(fmt::format("`{}` is not known there", printable(handle_.text)),
                       short_place(point_.file, point_.line));
  }

  // The method's body does.
  bool joins(CXCursor call) const {
    const CXCursor method = clang().getCursorReferenced(call);
    if (clang().getCursorKind(method) != CXCursor_CXXMethod || is_null(object_of(call)))
      return false;
    return first_below(clang().getCursorDefinition(method),
                       [&](CXCursor each) {
                         return clang().getCursorKind(each) == CXCursor_CallExpr && is_join(each);
                       })
        .has_value();
  }

  // So that it may be called again.
  bool asks_first(CXCursor call) const {
    const CXCursor method = clang().getCursorDefinition(clang().getCursorReferenced(call));
    return first_below(method,
                       [&](CXCursor each) {
                         return is_call_of(each, "joinable") && names_handle(object_of(each));
                       })
        .has_value();
  }

  Result<void> add_wait_for_future() {
    const std::string text = unit().text_of(point_.file).substr(0, point_.statement.begin);
    if (text.find(handle_.text + ".get()", point_.body.open) != std::string::npos)
      return usage_error(
          fmt::format("`{}` was asked for its value before", printable(handle_.text)));
    insert(handle_.text + ".wait();");
    return {};
  }

  bool is_join(CXCursor call) const {
    const std::string name = spelling(call);
    if (handle_.kind == Kind::thread) return name == "join" && names_handle(object_of(call));
    if (handle_.kind == Kind::threads) return name == "join" && is_in_loop_over_handle(call);
    const auto given = arguments(call);
    const bool is_named =
        handle_.kind == Kind::pthread ? name == "pthread_join" : name == "waitpid";
    return is_named && !given.empty() && names_handle(given[0]);
  }

  bool names_handle(CXCursor expression) const {
    return !is_null(expression) &&
           identity(variable_named_by(expression)) == identity(handle_.variable);
  }

  bool is_in_loop_over_handle(CXCursor call) const {
    const auto loop = loop_around(call);
    return loop && first_below(loop->statement.cursor, [&](CXCursor each) {
                     return clang().getCursorKind(each) != CXCursor_CallExpr && names_handle(each);
                   }).has_value();
  }

  std::optional<InsertionPoint> loop_around(CXCursor call) const {
    const SourceExtent extent = extent_of(call);
    const CodeAtLine code = code_at(unit(), extent.begin.file, extent.begin.line);
    for (auto each = code.statements.rbegin(); each != code.statements.rend(); ++each)
      if (clang().getCursorKind(each->cursor) == CXCursor_CXXForRangeStmt) {
        InsertionPoint point;
        point.file = code.file;
        point.line = each->first_line;
        point.statement = *each;
        point.block = code.blocks[each->block];
        point.body = code.blocks[each->body];
        return point;
      }
    return std::nullopt;
  }

  // `if (worker.joinable()) worker.join();`
  bool is_guarded(const InsertionPoint& statement) const {
    const std::string& text = unit().text_of(statement.file);
    const size_t from = statement.body.open;
    return text.substr(from, statement.statement.begin - from).find(handle_.text + ".joinable()") !=
           std::string::npos;
  }

  Result<void> cannot_move() const {
    return usage_error(
        fmt::format("`{}` is joined in a way that cannot be moved", printable(handle_.text)));
  }

  // Its end is waited for and not taken: whoever asks for its status later still gets it.
  Result<void> await_process() {
    const std::string step = indent_step(unit().text_of(point_.file));
    insert(fmt::format(
        "{{\n{0}siginfo_t ended;\n{0}waitid(P_PID, {1}, &ended, WEXITED | WNOWAIT);\n}}", step,
        handle_.text));
    for (SourceEdit& edit : include_edits(unit(), point_.file, "<sys/wait.h>"))
      draft_.edits.push_back(std::move(edit));
    return {};
  }

  Result<void> move_joins(const std::vector<InsertionPoint>& later) {
    const std::string end = is_c_source(unit()) ? "NULL" : "nullptr";
    switch (handle_.kind) {
      case Kind::thread:
        return move_thread(later);
      case Kind::threads:
        return move_one(later, true,
                        fmt::format("for (auto& thread : {}) thread.join();", handle_.text));
      case Kind::pthread:
        return move_one(later, false, fmt::format("pthread_join({}, {});", handle_.text, end));
      default:
        if (move_one(later, false, fmt::format("waitpid({}, {}, 0);", handle_.text, end)))
          return {};
        return await_process();
    }
  }

  // Those of other functions may come first or last, so they ask.
  Result<void> move_thread(const std::vector<InsertionPoint>& later) {
    bool is_moved = false;
    const std::string guarded = fmt::format("if ({0}.joinable()) {0}.join();", handle_.text);
    for (const InsertionPoint& join : later) {
      if (text_of_statement(join) != handle_.text + ".join();") return cannot_move();
      const bool is_ours = !is_field() && is_same_body(join, point_) && !join.statement.is_bare;
      if (is_ours) {
        draft_.edits.push_back(removal(unit(), join));
        is_moved = true;
      } else {
        draft_.edits.push_back(replacement(unit(), join, guarded));
      }
    }
    const bool is_safe = !is_field() && (is_moved || later.empty());
    insert(is_safe ? handle_.text + ".join();" : guarded);
    return {};
  }

  // As it is, with all that it is given; without one, a new one.
  Result<void> move_one(const std::vector<InsertionPoint>& later, bool is_loop, std::string fresh) {
    if (later.size() > 1) return cannot_move();
    if (!later.empty()) {
      InsertionPoint join = later[0];
      if (is_loop) {
        const auto loop = loop_around(join.statement.cursor);
        if (!loop) return cannot_move();
        join = *loop;
      }
      const CXCursorKind kind = clang().getCursorKind(unwrapped(join.statement.cursor));
      const bool is_plain = is_loop || kind == CXCursor_CallExpr;
      if (!is_plain || join.statement.is_bare || !is_same_body(join, point_)) return cannot_move();
      fresh = dedented(text_of_statement(join),
                       indentation_at(unit().text_of(join.file), join.statement.begin));
      draft_.edits.push_back(removal(unit(), join));
    }
    insert(fresh);
    return {};
  }

  std::string text_of_statement(const InsertionPoint& point) const {
    return unit()
        .text_of(point.file)
        .substr(point.statement.begin, point.statement.end - point.statement.begin);
  }

  void insert(const std::string& statement) {
    for (SourceEdit& edit : insertion(unit(), point_, statement))
      draft_.edits.push_back(std::move(edit));
    if (!point_.note.empty()) draft_.cautions.push_back(point_.note);
  }

  const PatchRequest& request_;
  RepairSources& sources_;
  HandOverPlaces places_;
  Handle handle_;
  InsertionPoint point_;
  DraftPatch draft_;
};

}  // namespace

Result<DraftPatch> draft_join(const PatchRequest& request, RepairSources& sources) {
  return JoinDraft(request, sources).write();
}

}  // namespace unflake
