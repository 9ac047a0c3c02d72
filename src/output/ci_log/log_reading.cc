#include "output/ci_log/log_reading.h"

#include <algorithm>
#include <set>

#include "output/ci_log/log_sections.h"
#include "output/read_outcome.h"
#include "util/scan.h"
#include "util/text.h"

namespace unflake {
namespace {

using State = LogSection::State;
using EndKind = LoggedEnd::Kind;

constexpr size_t most_section_bytes = 8 * 1024 * 1024;
constexpr size_t most_name_bytes = 500;

// The line by which the reader of a framework's output knows that it summed up.
std::string_view last_line_of(Framework framework) {
  switch (framework) {
    case Framework::gtest:
      return "[----------]\n[  PASSED  ] 0 tests.\n";
    case Framework::catch2:
      return "test cases: 1 | 1 failed\n";
    case Framework::doctest:
      return "[doctest] Status: FAILURE!\n";
    case Framework::boost_test:
      return "*** 1 failure is detected\n";
    default:
      return "";
  }
}

ProcessResult process_of(std::string output, const LoggedEnd& end) {
  ProcessResult process;
  process.end = ProcessResult::End::exited;
  process.code = 1;
  if (end.kind == EndKind::signalled) {
    process.end = ProcessResult::End::signalled;
    process.code = end.signal;
  }
  if (end.kind == EndKind::timed_out) process.end = ProcessResult::End::timed_out;
  process.output.total = output.size();
  process.output.head = std::move(output);
  return process;
}

Outcome outcome_of(std::string output, Framework framework, const LoggedEnd& end) {
  Test test;
  test.framework = framework;
  test.is_entry = true;
  return read_outcome(test, process_of(std::move(output), end));
}

std::string text_of(std::span<const LogLine> lines) {
  std::string text;
  for (const LogLine& line : lines) {
    if (text.size() + line.text.size() > most_section_bytes) break;
    text.append(line.text).push_back('\n');
  }
  return text;
}

bool has_signal(const std::vector<Failure>& failures) {
  return std::ranges::any_of(
      failures, [](const Failure& failure) { return failure.kind == FailureKind::signal; });
}

// A run that passes may report these.
bool is_said_in_passing(const Failure& failure) {
  return failure.kind == FailureKind::undefined_behaviour_sanitizer ||
         failure.kind == FailureKind::valgrind;
}

// Reads the sections of one program in order.
class Reader {
 public:
  Reader(const LoggedProgram& program, CiLog& log)
      : program_(program), log_(log), sections_(sections_in(program.lines)) {}

  void run() {
    log_.shows_passing_runs |= sections_.shows_passing_runs;
    for (at_ = 0; at_ < sections_.all.size(); ++at_) read(sections_.all[at_]);
    for (const LogSection& section : sections_.all) read_name(section);
    if (!found_) read_whole();
  }

 private:
  void read(const LogSection& section) {
    switch (section.state) {
      case State::passed:
        return read_passed(section);
      case State::failed:
        return read_failed(section);
      case State::unfinished:
        return read_unfinished(section);
      case State::loose:
        return read_loose(section);
      case State::named:
        return;
    }
  }

  // A sanitizer's report fails the run, and the framework does not know.
  void read_passed(const LogSection& section) {
    if (program_.end.kind == EndKind::passed) return;
    const std::string text = text_of(section.lines);
    if (!contains(text, "Sanitizer: ")) return;
    auto failures = failures_in(text, section.framework, {}, true);
    std::erase_if(failures, [](const Failure& failure) {
      return !is_sanitizer(failure.kind) || is_said_in_passing(failure);
    });
    if (!failures.empty()) add(section, std::move(failures));
  }

  // What made the program abort comes before the framework's report of the signal.
  void read_failed(const LogSection& section) {
    std::string text = text_of(section.lines);
    auto failures = failures_in(text, section.framework, {}, true);
    if (has_signal(failures) && at_ > 0 && sections_.all[at_ - 1].state == State::loose)
      failures =
          failures_in(text_of(sections_.all[at_ - 1].lines) + text, section.framework, {}, true);
    add(section, std::move(failures));
  }

  bool next_reports_a_signal() const {
    if (at_ + 1 == sections_.all.size()) return false;
    const LogSection& next = sections_.all[at_ + 1];
    return next.state == State::failed &&
           has_signal(failures_in(text_of(next.lines), next.framework, {}, true));
  }

  void read_unfinished(const LogSection& section) {
    const bool is_last = at_ + 1 == sections_.all.size();
    const bool told = section.end.kind != EndKind::unknown;
    const LoggedEnd end = !told && is_last ? program_.end : section.end;
    add(section, failures_in(text_of(section.lines), section.framework, end, false));
  }

  void read_loose(const LogSection& section) {
    if (program_.end.kind == EndKind::passed) return;
    auto failures = failures_in(text_of(section.lines), Framework::command, {}, false);
    const bool alone = sections_.all.size() == 1;
    if (failures.empty() || (!alone && std::ranges::all_of(failures, is_said_in_passing))) return;
    if (!next_reports_a_signal()) add(section, std::move(failures));
  }

  // A summary repeats what was said before, or is all that was said.
  void read_name(const LogSection& section) {
    if (section.state == State::named && !named_.contains(section.test)) add(section, {});
  }

  // Nothing in particular failed: the program did.
  void read_whole() {
    const bool is_entry = program_.end.kind != EndKind::unknown;
    const LoggedEnd end = is_entry ? program_.end : sections_.death;
    if (end.kind == EndKind::passed || end.kind == EndKind::unknown) return;
    LogSection whole;
    whole.lines = program_.lines;
    if (end.kind == EndKind::not_started) {
      Failure failure;
      failure.kind = FailureKind::not_started;
      return add(whole, {failure});
    }
    Outcome outcome = outcome_of(text_of(whole.lines), Framework::command, end);
    for (Failure& failure : outcome.failures)  // the status was made up
      if (failure.kind == FailureKind::exit_status) failure.expression.clear();
    add(whole, std::move(outcome.failures));
  }

  void add(const LogSection& section, std::vector<Failure> failures) {
    found_ = true;
    named_.insert(section.test);
    if (log_.failures.size() == most_logged_failures) return;
    LoggedFailure logged;
    logged.test = printable(shorten(section.test, most_name_bytes));
    logged.entry = printable(shorten(program_.entry, most_name_bytes));
    logged.framework = section.framework;
    logged.failures = std::move(failures);
    logged.line = section.lines.empty() ? program_.line : section.lines.front().number;
    log_.failures.push_back(std::move(logged));
  }

  const LoggedProgram& program_;
  CiLog& log_;
  const LogSections sections_;
  size_t at_ = 0;
  std::set<std::string> named_;  // tests
  bool found_ = false;
};

}  // namespace

std::vector<Failure> failures_in(std::string text, Framework framework, const LoggedEnd& end,
                                 bool is_complete) {
  if (is_complete) text += last_line_of(framework);
  std::vector<Failure> failures = outcome_of(std::move(text), framework, end).failures;
  if (!failures.empty() && failures.front().kind == FailureKind::exit_status) failures.clear();
  return failures;
}

void read_program(const LoggedProgram& program, CiLog& log) {
  if (program.end.kind == EndKind::passed) log.shows_passing_runs = true;
  Reader(program, log).run();
}

}  // namespace unflake
