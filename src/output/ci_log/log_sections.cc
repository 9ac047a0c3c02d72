#include "output/ci_log/ci_log.h"

#include <array>
#include <optional>
#include "util/text.h"

namespace unflake {
namespace {

using Kind = LogMark::Kind;
using Lines = std::span<const LogLine>;

constexpr size_t ruler_width = 79;
constexpr size_t most_title_lines = 20;

bool is_ruler(std::string_view line, char of) {
  return line.size() == ruler_width && line.find_first_not_of(of) == std::string_view::npos;
}

// GoogleTest's names have no spaces; its summaries do: "2 tests, listed below:".
std::string_view gtest_name(std::string_view text) {
  text = text.substr(0, text.find(", where "));
  if (text.ends_with(" ms)")) text = text.substr(0, text.rfind(" ("));
  text = trim(text);
  return contains(text, " ") || !contains(text, ".") ? std::string_view() : text;
}

// What a test prints may come before the mark of its end.
LogMark gtest_end(std::string_view line) {
  struct Verdict {
    std::string_view mark;
    Kind kind;
  };
  constexpr std::array verdicts{Verdict{"[       OK ] ", Kind::passed},
                                Verdict{"[  FAILED  ] ", Kind::failed},
                                Verdict{"[  SKIPPED ] ", Kind::skipped}};
  if (!contains(line, "] ")) return {};
  for (const Verdict& verdict : verdicts) {
    const auto parts = split_at(line, verdict.mark);
    const std::string_view name = parts ? gtest_name(parts->after) : "";
    if (name.empty()) continue;
    const bool in_summary = verdict.kind == Kind::failed && !line.ends_with(" ms)");
    return {in_summary ? Kind::named_failed : verdict.kind, Framework::gtest, std::string(name)};
  }
  return {};
}

LogMark gtest_mark(Lines lines) {
  std::string_view line = lines.front().text;
  if (consume(line, "[ RUN      ] ")) return {Kind::run, Framework::gtest, std::string(trim(line))};
  if (consume(line, "[==========] "))
    return {line.starts_with("Running ") ? Kind::begin : Kind::end, Framework::gtest, ""};
  return gtest_end(line);
}

// Whether the reporter had to wrap: no other word fits at the end of the line above.
bool is_wrapped(std::string_view above, std::string_view line) {
  const std::string_view words = trim(line);
  return above.size() + 1 + words.substr(0, words.find(' ')).size() >= ruler_width;
}

// Below the title come its sections, one per line.
std::string title_in(Lines lines) {
  std::string title(trim(lines.front().text));
  for (size_t i = 1; i < lines.size() && is_wrapped(lines[i - 1].text, lines[i].text); ++i)
    title.append(" ").append(trim(lines[i].text));
  return title;
}

// ruler, title, ruler, "file:12", dots
LogMark catch2_report(Lines lines) {
  if (!is_ruler(lines.front().text, '-')) return {};
  size_t at = 1;
  while (at < lines.size() && at < most_title_lines && !is_ruler(lines[at].text, '-')) ++at;
  if (at + 2 >= lines.size() || at == 1 || !is_ruler(lines[at].text, '-')) return {};
  if (!source_line_at_end(lines[at + 1].text) || !is_ruler(lines[at + 2].text, '.')) return {};
  return {Kind::report, Framework::catch2, title_in(lines.subspan(1, at - 1)), {}, at + 3};
}

LogMark catch2_mark(Lines lines) {
  const std::string_view line = lines.front().text;
  if (line.starts_with("All tests passed (")) return {Kind::all_passed, Framework::catch2, ""};
  if (line.starts_with("test cases: ")) return {Kind::end, Framework::catch2, ""};
  if (contains(line, " is a Catch") && line.ends_with(" host application."))
    return {Kind::begin, Framework::catch2, ""};
  return catch2_report(lines);
}

// ruler, "file:12:", "TEST SUITE: suite", "TEST CASE:  name"
LogMark doctest_report(Lines lines) {
  if (!is_ruler(lines.front().text, '=') || lines.size() < 3) return {};
  std::string_view place = lines[1].text;
  if (!consume_end(place, ":") || !source_line_at_end(place)) return {};
  std::string suite;
  for (size_t at = 2; at < lines.size() && at < 6; ++at) {
    std::string_view line = lines[at].text;
    if (consume(line, "TEST SUITE: ")) suite = std::string(line) + "/";
    if (consume(line, "TEST CASE:  ") || line.starts_with("  Scenario:"))
      return {Kind::report, Framework::doctest, suite + std::string(line), {}, at + 1};
  }
  return {};
}

LogMark doctest_mark(Lines lines) {
  const std::string_view line = lines.front().text;
  if (line.starts_with("[doctest] doctest version")) return {Kind::begin, Framework::doctest, ""};
  if (line.starts_with("[doctest] Status: SUCCESS"))
    return {Kind::all_passed, Framework::doctest, ""};
  if (line.starts_with("[doctest] ")) return {Kind::end, Framework::doctest, ""};
  return doctest_report(lines);
}

// file(12): error: in "suite/case": text
LogMark boost_report(std::string_view line) {
  for (const auto* mark : {": fatal error: in \"", ": error: in \""}) {
    const auto parts = split_at(line, mark);
    const auto name = parts ? split_at(parts->after, "\": ") : std::nullopt;
    if (name && source_line_at_end(parts->before))
      return {Kind::report, Framework::boost_test, std::string(name->before)};
  }
  return {};
}

// Test case "suite/case" has failed with:
LogMark boost_summary(std::string_view line) {
  line = trim(line);
  if (!consume(line, "Test case \"")) return {};
  if (!consume_end(line, "\" has failed with:") && !consume_end(line, "\" was aborted with:"))
    return {};
  return {Kind::named_failed, Framework::boost_test, std::string(line)};
}

LogMark boost_mark(Lines lines) {
  const std::string_view line = lines.front().text;
  if (line.starts_with("*** No errors detected"))
    return {Kind::all_passed, Framework::boost_test, ""};
  if (line.starts_with("*** ") && contains(line, " in the test module "))
    return {Kind::end, Framework::boost_test, ""};
  if (line.starts_with("Running ") &&
      (line.ends_with(" test case...") || line.ends_with(" test cases...")))
    return {Kind::begin, Framework::boost_test, ""};
  const LogMark report = boost_report(line);
  return report.kind == Kind::none ? boost_summary(line) : report;
}

LogMark death_mark(Lines lines) {
  const auto end = death_in(lines.front().text);
  if (!end) return {};
  return {Kind::death, Framework::command, "", *end};
}

}  // namespace

LogMark mark_at(Lines lines) {
  for (const auto& recognise : {gtest_mark, catch2_mark, doctest_mark, boost_mark, death_mark}) {
    LogMark mark = recognise(lines);
    if (mark.kind != Kind::none) return mark;
  }
  return {};
}

namespace {

using Kind = LogMark::Kind;
using State = LogSection::State;

class Split {
 public:
  explicit Split(std::span<const LogLine> lines) : lines_(lines) {}

  LogSections run() {
    for (size_t at = 0; at < lines_.size();) {
      const LogMark mark = mark_at(lines_.subspan(at));
      apply(mark, at);
      at += mark.lines;
    }
    close(lines_.size());
    cut_loose(lines_.size());
    return std::move(found_);
  }

 private:
  // What a test of GoogleTest prints may look like anything.
  bool is_output_of_a_test(const LogMark& mark) const {
    return open_ && open_->state == State::unfinished && mark.framework != Framework::gtest &&
           mark.kind != Kind::death;
  }

  void apply(const LogMark& mark, size_t at) {
    if (is_output_of_a_test(mark)) return;
    switch (mark.kind) {
      case Kind::none:
        return;
      case Kind::run:
        return open(State::unfinished, mark, at);
      case Kind::report:
        if (open_ && open_->framework == mark.framework && open_->test == mark.test) return;
        return open(State::failed, mark, at);
      case Kind::passed:
        found_.shows_passing_runs = true;
        return conclude(State::passed, mark, at);
      case Kind::failed:
        return is_open(mark) ? conclude(State::failed, mark, at) : claim_loose(mark, at);
      case Kind::skipped:
        return conclude(State::passed, mark, at);
      case Kind::named_failed:
        return is_open(mark) ? conclude(State::failed, mark, at) : name(mark, at);
      case Kind::all_passed:
        found_.shows_passing_runs = true;
        [[fallthrough]];
      case Kind::begin:
      case Kind::end:
        close(at);
        return cut_loose(at);
      case Kind::death:
        return die(mark.end, at);
    }
  }

  bool is_open(const LogMark& mark) const { return open_ && open_->test == mark.test; }

  void open(State state, const LogMark& mark, size_t at) {
    close(at);
    cut_loose(at);
    open_ = LogSection{state, mark.framework, mark.test, {}, {}};
  }

  void close(size_t end) {
    if (!open_) return;
    const bool died = open_->state == State::unfinished && died_at_;
    push(std::move(*open_), died ? *died_at_ + 1 : end);
    open_.reset();
    died_at_.reset();
  }

  void conclude(State state, const LogMark& mark, size_t at) {
    if (!is_open(mark)) return;
    open_->state = state;
    close(at + 1);
  }

  // --gtest_brief says nothing about a test before it failed.
  void claim_loose(const LogMark& mark, size_t at) {
    close(at);
    push({State::failed, mark.framework, mark.test, {}, {}}, at + 1);
  }

  void name(const LogMark& mark, size_t at) {
    close(at);
    cut_loose(at);
    push({State::named, mark.framework, mark.test, {}, {}}, at + 1);
  }

  // Whether it was the program that died, or the test that said so, shows when the test ends.
  void die(const LoggedEnd& end, size_t at) {
    if (open_ && open_->state == State::unfinished) {
      if (died_at_) return;
      open_->end = end;
      died_at_ = at;
    } else if (found_.death.kind == LoggedEnd::Kind::unknown) {
      found_.death = end;
    }
  }

  void cut_loose(size_t end) {
    if (start_ < end) push({}, end);
  }

  void push(LogSection section, size_t end) {
    section.lines = lines_.subspan(start_, end - start_);
    found_.all.push_back(std::move(section));
    start_ = end;
  }

  std::span<const LogLine> lines_;
  size_t start_ = 0;  // of the section that is being read
  std::optional<LogSection> open_;
  std::optional<size_t> died_at_;  // while the open test ran
  LogSections found_;
};

}  // namespace

LogSections sections_in(std::span<const LogLine> lines) {
  return Split(lines).run();
}

}  // namespace unflake
