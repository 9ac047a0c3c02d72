#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "patch/literals/time_literal.h"
#include "patch/repair/repair_sources.h"
#include "patch/repair/syntax.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

constexpr double tolerance = 1.5;  // of what runs say about a bound
constexpr double close = 1.2;      // the same, where the assertion does not name it

struct TimeUnit {
  std::string_view suffix, type;
  double microseconds;
};

constexpr TimeUnit time_units[] = {
    {"ns", "nanoseconds", 1e-3}, {"us", "microseconds", 1}, {"ms", "milliseconds", 1e3},
    {"s", "seconds", 1e6},       {"min", "minutes", 60e6},
};

struct NumberInText {
  size_t offset = 0;
  std::string digits;
  double microseconds = 0;  // of one; 0: the text does not say
};

double unit_of(const std::string& suffix, const std::string& type) {
  for (const TimeUnit& unit : time_units)
    if (unit.suffix == suffix || unit.type == type) return unit.microseconds;
  return 0;
}

// `100ms`, `std::chrono::milliseconds(100)`, `100`.
std::vector<NumberInText> numbers_in(const std::string& text) {
  static const std::regex number(
      R"((?:(\w+)\s*[({]\s*)?\b(\d[\d']*(?:\.\d+)?)(ns|us|ms|s|min)?\b)");
  std::vector<NumberInText> found;
  for (std::sregex_iterator each(text.begin(), text.end(), number), end; each != end; ++each)
    found.push_back({static_cast<size_t>(each->position(2)), each->str(2),
                     unit_of(each->str(3), each->str(1))});
  return found;
}

double value_of(std::string digits) {
  std::erase(digits, '\'');
  return std::stod(digits);
}

// A plain number counts what makes it the old time: seconds, milliseconds or microseconds.
std::optional<double> unit_that_fits(const NumberInText& number, Duration old_value) {
  const double wanted = static_cast<double>(old_value.count());
  for (const double unit : {1e6, 1e3, 1.0}) {
    if (number.microseconds != 0 && number.microseconds != unit) continue;
    if (std::abs(value_of(number.digits) * unit - wanted) < 0.5) return unit;
  }
  return std::nullopt;
}

// The unit of a number that may be the bound.
std::optional<double> unit_of_bound(const NumberInText& number, const NewBound& bound) {
  if (bound.old_value > Duration{}) return unit_that_fits(number, bound.old_value);
  const double value = value_of(number.digits) * number.microseconds;
  const bool fits = value >= static_cast<double>(bound.least_old.count()) / tolerance &&
                    value <= static_cast<double>(bound.most_old.count()) * tolerance;
  return fits && value > 0 ? std::optional(number.microseconds) : std::nullopt;
}

// The only time of its file, written with its unit, that runs say the bound may be.
std::optional<SourceEdit> edit_elsewhere(const PatchPlace& place, const NewBound& bound) {
  std::optional<SourceEdit> only;
  const std::string& text = place.unit->text_of(place.file);
  const auto starts = line_starts(text);
  for (const NumberInText& number : numbers_in(text)) {
    const double value = value_of(number.digits) * number.microseconds;
    if (bound.old_value > Duration{} ||
        value * close < static_cast<double>(bound.least_old.count()) ||
        value > static_cast<double>(bound.most_old.count()) * close)
      continue;
    if (only) return std::nullopt;
    const auto line = std::ranges::upper_bound(starts, number.offset) - starts.begin();
    const double count =
        std::ceil(static_cast<double>(bound.new_value.count()) / number.microseconds);
    only = SourceEdit{place.file,    static_cast<int>(line),       number.offset,
                      number.digits, fmt::format("{:.0f}", count), ""};
  }
  return only;
}

std::string old_words(const NewBound& bound) {
  if (bound.old_value > Duration{}) return format_duration(bound.old_value);
  return fmt::format("{} to {}", format_duration(bound.least_old), format_duration(bound.most_old));
}

Result<SourceEdit> edit_assertion(const PatchPlace& place, const NewBound& bound) {
  const std::string& text = place.unit->text_of(place.file);
  std::vector<SourceEdit> edits;
  for (const MacroUse& use : macro_uses(*place.unit, place.file)) {
    if (use.first_line > place.line || place.line > use.last_line) continue;
    for (const NumberInText& number : numbers_in(text.substr(use.begin, use.end - use.begin)))
      if (const auto unit = unit_of_bound(number, bound)) {
        const double count = std::ceil(static_cast<double>(bound.new_value.count()) / *unit);
        edits.push_back({place.file, place.line, use.begin + number.offset, number.digits,
                         fmt::format("{:.0f}", count), ""});
      }
  }
  if (edits.empty())
    if (auto elsewhere = edit_elsewhere(place, bound)) return std::move(*elsewhere);
  if (edits.size() != 1)
    return usage_error(fmt::format("{} literal there is {}", edits.empty() ? "no" : "more than one",
                                   old_words(bound)),
                       short_place(place.file, place.line),
                       "change by hand what bounds the time there; " +
                           format_duration(bound.new_value) + " would hold");
  return edits[0];
}

}  // namespace

namespace {

std::string old_text(const SourceEdit& edit, const NewBound& bound) {
  if (bound.old_value > Duration{}) return format_duration(bound.old_value);
  // The same unit, rounded up: far enough from the old number.
  const double part = value_of(edit.old_text) / value_of(edit.new_text);
  return format_duration(std::chrono::round<std::chrono::milliseconds>(bound.new_value * part));
}

}  // namespace

Result<DraftPatch> draft_bound(const PatchRequest& request, RepairSources& sources) {
  if (!request.bound) return usage_error("it is no test of how long something takes");
  const NewBound& bound = *request.bound;
  const auto place = sources.place(bound.place.spot);
  if (!place) return place.error();
  auto edit = bound.api.empty()
                  ? edit_assertion(*place, bound)
                  : edit_time_literal({place->file, place->line, bound.api, bound.old_value},
                                      bound.new_value, request.compile_commands_folder);
  if (!edit) return edit.error();
  DraftPatch draft;
  draft.idiom = RepairIdiom::bound;
  draft.what = fmt::format("{} allows {} instead of {}", short_place(edit->file, edit->line),
                           format_duration(bound.new_value), old_text(*edit, bound));
  if (!edit->caution.empty()) draft.cautions.push_back(edit->caution);
  draft.edits.push_back(std::move(*edit));
  return draft;
}

namespace {

constexpr std::string_view helper_name = "EventuallyTrue";

// C++11.
constexpr std::string_view helper =
    R"(// Waits until the condition is true, at most this long; says whether it is.
template <class Condition>
static bool EventuallyTrue(Condition condition,
                           std::chrono::seconds bound = std::chrono::seconds(10)) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return condition();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
})";

std::string styled(std::string_view text, const std::string& step, const std::string& line_end) {
  std::string styled_text;
  for (std::string line : split(text, '\n')) {
    size_t depth = 0;
    const bool is_continued = line.starts_with("     ");
    while (!is_continued && line.starts_with("  ")) {
      line.erase(0, 2);
      ++depth;
    }
    for (size_t i = 0; i < depth; ++i) styled_text += step;
    styled_text += line + line_end;
  }
  return styled_text;
}

// Where another argument of the same macro would begin.
bool has_bare_comma(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t next = past_literal_or_comment(text, at);
    if (next > at) {
      at = next;
    } else if (text[at] == '(') {
      at = std::min(matching_bracket(text, at), text.size() - 1) + 1;
    } else if (text[at++] == ',') {
      return true;
    }
  }
  return false;
}

bool is_part_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Where a word begins that is no member of something else; npos: nowhere.
size_t find_word(const std::string& text, const std::string& word, size_t from = 0) {
  for (size_t at = from; at < text.size();) {
    const size_t next = past_literal_or_comment(text, at);
    if (next > at) {
      at = next;
      continue;
    }
    const size_t end = at + word.size();
    const char before = at == 0 ? ' ' : text[at - 1];
    const bool is_whole = !is_part_of_word(before) && before != '.' && before != '>' &&
                          before != ':' && (end >= text.size() || !is_part_of_word(text[end]));
    if (is_whole && !word.empty() && text.compare(at, word.size(), word) == 0) return at;
    ++at;
  }
  return std::string::npos;
}

bool has_word(const std::string& text, const std::string& word) {
  return find_word(text, word) != std::string::npos;
}

void replace_word(std::string& text, const std::string& word, const std::string& by) {
  for (size_t at = find_word(text, word); at != std::string::npos;
       at = find_word(text, word, at + by.size()))
    text.replace(at, word.size(), by);
}

constexpr const char* only_waits =
    "no order of the threads is known that repairs it: look whether what is asserted may be false "
    "for a while, or the wait hides a defect";
constexpr int most_read_before = 3;  // that were read from one another

class PollDraft {
 public:
  PollDraft(const PatchRequest& request, RepairSources& sources)
      : request_(request), sources_(sources) {}

  Result<DraftPatch> write() {
    if (auto found = find_assertion(); !found) return found.error();
    point_ = assertion_.point;
    if (auto again = read_again(); !again) return again.error();
    return write_wait();
  }

  // Only what is read once, just before it is asserted.
  Result<DraftPatch> write_keeping() {
    if (auto found = find_assertion(); !found) return found.error();
    if (!constant_read_before() || is_c_source(*place_.unit))
      return usage_error("nothing is read before it");
    point_ = assertion_.point;
    if (auto again = read_again(); !again) return again.error();
    // What it does again and again is the same.
    if (auto plain = write_wait(); !plain) return plain;
    // The file was parsed again.
    const size_t first_read = point_.statement.begin;
    if (auto found = find_assertion(); !found) return found.error();
    const auto known = constant_read_before();
    const auto declared = known ? statement_of(*place_.unit, *known) : std::nullopt;
    if (!declared || declared->statement.begin != first_read)
      return usage_error("what is read depends on what was read before");
    return keeping(*known, *declared, assertion_.condition);
  }

 private:
  Result<DraftPatch> write_wait() {
    Error first_refusal;
    for (const bool at_sleep : {true, false}) {
      auto draft = at_sleep ? instead_of_sleep() : before_assertion();
      if (!draft) {
        if (first_refusal.what.empty()) first_refusal = draft.error();
        continue;
      }
      auto checked = check(*draft);
      sources_.restore();
      if (checked && request_.hand_overs.empty()) draft->cautions.push_back(only_waits);
      if (checked) return draft;
      first_refusal = checked.error();
    }
    return first_refusal;
  }

  // `const std::string answer = ask();` -> `std::string `
  std::string type_of(CXCursor variable, const InsertionPoint& declared) const {
    const size_t name = place_in_file(clang().getCursorLocation(variable)).offset;
    std::string type = text().substr(declared.statement.begin, name - declared.statement.begin);
    if (type.starts_with("const ")) type.erase(0, 6);
    if (type.find("auto") == std::string::npos) return type;
    type = type_name(variable);
    return type.starts_with("const ") ? type.substr(6) + " " : type + " ";
  }

  Result<DraftPatch> keeping(CXCursor variable, const InsertionPoint& declared,
                             const std::string& asserted) {
    const std::string type = type_of(variable, declared), value = initialiser_of(variable);
    if (type.find('&') != std::string::npos)
      return usage_error("what is read is a reference, which can be read only once");
    const std::string name = spelling(variable);
    DraftPatch draft = begun(short_place(declared.file, declared.line));
    draft.what += ", and keeps what it has read";
    draft.edits.push_back(
        replacement(*place_.unit, declared,
                    fmt::format("{1}{0}{{}};\n{2}([&] {{\n{3}{0} = {4};\n{3}return {5};\n}});",
                                name, type, helper_name, step(), value, asserted)));
    for (SourceEdit& edit : sleep_removal(request_, sources_, {declared}, draft.cautions))
      draft.edits.push_back(std::move(edit));
    add_helper(draft);
    if (request_.hand_overs.empty()) draft.cautions.push_back(only_waits);
    return draft;
  }

  std::string statement() const {
    if (is_c_source(*place_.unit))
      return fmt::format(
          "for (int tries = 0; tries < 10000 && !({}); ++tries) {{\n"
          "{}nanosleep(&(struct timespec){{0, 1000000}}, NULL);\n}}",
          assertion_.condition, step());
    std::string condition = assertion_.condition;
    std::replace(condition.begin(), condition.end(), '\n', ' ');
    if (has_bare_comma(condition)) condition = "(" + condition + ")";
    // The check that follows tells more than that it was not true in time.
    return fmt::format("{}([&] {{ return {}; }});", helper_name, condition);
  }

  const std::string& text() const { return place_.unit->text_of(place_.file); }
  std::string step() const { return indent_step(text()); }

  Result<void> find_assertion() {
    if (request_.failure.file.empty() && request_.framework == Framework::command)
      return find_check_of_main();
    const auto failing = sources_.place(request_.failure.file, request_.failure.line);
    if (!failing) return failing.error();
    place_ = *failing;
    auto assertion = assertion_at(place_);
    if (!assertion) return assertion.error();
    assertion_ = *assertion;
    return {};
  }

  // In the first source that is known to matter and has a main.
  Result<void> find_check_of_main() {
    std::vector<CodeSpot> spots;
    if (request_.wait) spots.push_back(request_.wait->place.spot);
    for (const HandOver& each : request_.hand_overs) {
      spots.push_back(each.barrier.spot);
      spots.push_back(each.critical.spot);
    }
    Error refusal = usage_error("the check that fails is not known");
    for (const CodeSpot& spot : spots) {
      const auto place = sources_.place(spot);
      auto check = place ? check_of_main(place->unit) : Result<Assertion>(place.error());
      if (!check) {
        refusal = check.error();
        continue;
      }
      place_ = *place;
      assertion_ = std::move(*check);
      place_.line = assertion_.use.first_line;
      return {};
    }
    return refusal;
  }

  // What was read before the assertion stays as it was read: the wait reads it again, and comes
  // before that.
  Result<void> read_again() {
    for (int level = 0; level < most_read_before; ++level) {
      const auto known = constant_read_before();
      if (!known) return {};
      const auto declared = statement_of(*place_.unit, *known);
      const std::string value = initialiser_of(*known);
      if (!declared || value.empty() || !is_same_body(*declared, assertion_.point))
        return usage_error(fmt::format("`{}` does not change any more", spelling(*known)),
                           short_place(place_.file, assertion_.use.first_line));
      replace_word(assertion_.condition, spelling(*known), value);
      point_ = *declared;
    }
    return {};
  }

  // The last constant of the function that the condition names and that took a call to read.
  std::optional<CXCursor> constant_read_before() const {
    std::optional<CXCursor> found;
    walk(assertion_.point.body.owner, [&](CXCursor cursor) {
      if (clang().getCursorKind(cursor) != CXCursor_VarDecl || !is_constant(cursor)) return;
      const Spot begin = extent_of(cursor).begin;
      if (begin.file == place_.file && begin.offset < assertion_.use.begin &&
          has_word(assertion_.condition, spelling(cursor)) && is_read_by_call(cursor))
        found = cursor;
    });
    return found;
  }

  static bool is_constant(CXCursor variable) {
    return clang().isConstQualifiedType(clang().getCursorType(variable)) != 0;
  }

  static bool is_read_by_call(CXCursor variable) {
    return first_below(variable,
                       [](CXCursor each) {
                         const CXCursor called = clang().getCursorReferenced(each);
                         return clang().getCursorKind(each) == CXCursor_CallExpr &&
                                !is_null(called) &&
                                clang().getCursorKind(called) != CXCursor_Constructor;
                       })
        .has_value();
  }

  // Of `= value`; empty: it is written in another way.
  std::string initialiser_of(CXCursor variable) const {
    const CXCursor value = clang().Cursor_getVarDeclInitializer(variable);
    if (is_null(value)) return "";
    const size_t begin = extent_of(value).begin.offset;
    if (!trim(std::string_view(text()).substr(0, begin)).ends_with('=')) return "";
    const std::string written = source_text(*place_.unit, value);
    const bool has_operator = written.find_first_of(" +*/%&|<=?!^~") < written.find('(');
    return has_operator ? "(" + written + ")" : written;
  }

  DraftPatch begun(const std::string& where) const {
    DraftPatch draft;
    draft.idiom = RepairIdiom::poll;
    draft.what = fmt::format("{} waits up to 10 s until what {} asserts is true", where,
                             short_place(place_.file, assertion_.use.first_line));
    return draft;
  }

  Result<DraftPatch> instead_of_sleep() {
    const auto sleep = sleep_statement(request_, sources_);
    if (!sleep) return sleep.error();
    if (!is_same_body(*sleep, assertion_.point))
      return usage_error("the sleep is in another function than the assertion");
    DraftPatch draft =
        begun(fmt::format("instead of sleeping, {}", short_place(sleep->file, sleep->line)));
    draft.edits.push_back(replacement(*place_.unit, *sleep, statement()));
    add_helper(draft);
    return draft;
  }

  Result<DraftPatch> before_assertion() {
    DraftPatch draft = begun(short_place(place_.file, point_.line));
    for (SourceEdit& edit : insertion(*place_.unit, point_, statement()))
      draft.edits.push_back(std::move(edit));
    for (SourceEdit& edit : sleep_removal(request_, sources_, {point_}, draft.cautions))
      draft.edits.push_back(std::move(edit));
    add_helper(draft);
    return draft;
  }

  void add_helper(DraftPatch& draft) const {
    if (is_c_source(*place_.unit)) return add_includes(draft, {"<time.h>"});
    if (text().find(std::string(helper_name) + "(") != std::string::npos) return;
    add_includes(draft, {"<chrono>", "<thread>"});
    SourceEdit edit;
    edit.file = place_.file;
    edit.offset = behind_includes(*place_.unit, place_.file);
    edit.line = place_.line;
    const std::string end = line_end_of(text());
    edit.new_text = end + styled(helper, step(), end);
    const bool is_followed = text().compare(edit.offset, end.size(), end) == 0;
    if (!is_followed) edit.new_text += end;
    draft.edits.push_back(std::move(edit));
  }

  void add_includes(DraftPatch& draft, const std::vector<std::string>& names) const {
    for (const std::string& name : names)
      for (SourceEdit& edit : include_edits(*place_.unit, place_.file, name))
        draft.edits.push_back(std::move(edit));
  }

  // With the compiler: the condition must mean something there, and only look.
  Result<void> check(DraftPatch& draft) {
    if (auto tried = sources_.try_edits(draft.edits, {}); !tried) return tried.error();
    const auto condition = tried_condition();
    if (!condition) return usage_error("the new wait was not found again");
    std::string doubt;
    const std::string why = side_effect_of(*condition, doubt);
    if (!why.empty())
      return usage_error(fmt::format("`{}` cannot be asked for again and again: {}",
                                     printable(assertion_.condition), why),
                         short_place(place_.file, assertion_.use.first_line));
    if (!doubt.empty()) draft.cautions.push_back(doubt);
    draft.is_tried = true;
    return {};
  }

  // The lambda or loop that was put in. Extents of what a macro makes of it mean nothing.
  std::optional<CXCursor> tried_condition() const {
    const CXCursorKind wanted = is_c_source(*place_.unit) ? CXCursor_ForStmt : CXCursor_LambdaExpr;
    const size_t at = tried_at();
    for (const CXCursor declaration : place_.unit->top_level(place_.file)) {
      if (extent_of(declaration).end.offset < at) continue;
      const auto found = first_below(declaration, [&](CXCursor each) {
        return clang().getCursorKind(each) == wanted && extent_of(each).begin.offset == at &&
               extent_of(each).begin.file == place_.file;
      });
      if (found) return wanted == CXCursor_ForStmt ? children(*found)[1] : *found;
    }
    return std::nullopt;
  }

  size_t tried_at() const {
    const std::string begun_with = is_c_source(*place_.unit)
                                       ? "for (int tries = 0; tries < 10000 && !("
                                       : std::string(helper_name) + "([&] { return ";
    const size_t at = text().find(begun_with);
    return is_c_source(*place_.unit) ? at : at + helper_name.size() + 1;
  }

  const PatchRequest& request_;
  RepairSources& sources_;
  PatchPlace place_;
  Assertion assertion_;
  InsertionPoint point_;  // where to wait: before what it reads
};

}  // namespace

Result<DraftPatch> draft_poll(const PatchRequest& request, RepairSources& sources) {
  return PollDraft(request, sources).write();
}

Result<DraftPatch> draft_poll_keeping(const PatchRequest& request, RepairSources& sources) {
  return PollDraft(request, sources).write_keeping();
}

}  // namespace unflake
