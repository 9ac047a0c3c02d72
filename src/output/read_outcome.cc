#include "output/read_outcome.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <cerrno>

#include "output/output_parsers.h"
#include "suite/frameworks.h"
#include "util/result.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int catch2_all_skipped = 4;

// A run and everything that was read from it.
struct Reading {
  const Test& test;
  const ProcessResult& process;
  std::vector<TextPiece> pieces;
  std::vector<std::string> texts;  // the same, as whole lines without colours
  Evidence evidence;
  bool broke_off = false;  // the framework reported a start, and no end
};

void append(std::vector<Failure>& all, const std::vector<Failure>& more) {
  const size_t room = most_failures - std::min(most_failures, all.size());
  all.insert(all.end(), more.begin(),
             more.begin() + static_cast<ptrdiff_t>(std::min(room, more.size())));
}

const FrameworkOutput* own_output(const Test& test) {
  for (const FrameworkOutput& output : framework_outputs())
    if (output.framework == test.framework) return &output;
  return nullptr;
}

Reading read(const Test& test, const ProcessResult& process) {
  Reading reading{test, process, pieces_of(process), {}, {}};
  const FrameworkOutput* own = own_output(test);
  for (const TextPiece& piece : reading.pieces) {
    reading.texts.push_back(readable_lines(piece));
    if (own && own->broke_off(reading.texts.back())) reading.broke_off = true;
    if (logs_progress(test)) reading.texts.back() = without_boost_progress(reading.texts.back());
    const Evidence more = evidence_in(reading.texts.back(), test.framework);
    append(reading.evidence.reports, more.reports);
    append(reading.evidence.aborts, more.aborts);
    append(reading.evidence.checks, more.checks);
    if (more.framework) reading.evidence.framework = more.framework;
  }
  return reading;
}

Failure make_failure(FailureKind kind, std::string expression, std::string message) {
  Failure failure;
  failure.kind = kind;
  failure.expression = std::move(expression);
  failure.message = std::move(message);
  return failure;
}

bool is_signal(const Failure& failure) {
  return failure.kind == FailureKind::signal;
}

bool caught_signal(const Reading& reading) {
  const std::vector<Failure>& checks = reading.evidence.checks;
  return std::any_of(checks.begin(), checks.end(), is_signal);
}

bool any_text(const Reading& reading, bool (*says)(std::string_view)) {
  return std::any_of(reading.texts.begin(), reading.texts.end(), says);
}

// Whether the run was cut short, so its last words explain more than the checks before.
bool died(const Reading& reading) {
  const Evidence& evidence = reading.evidence;
  if (reading.process.end == ProcessResult::End::signalled) return true;
  if (evidence.framework && !any_text(reading, evidence.framework->finished)) return true;
  return caught_signal(reading);
}

// Undefined behaviour is reported in passing; what other tools report ends the process.
std::vector<Failure> most_deadly_first(std::vector<Failure> reports) {
  std::stable_partition(reports.begin(), reports.end(), [](const Failure& report) {
    return report.kind != FailureKind::undefined_behaviour_sanitizer;
  });
  return reports;
}

// A check that fails may abort the process on purpose; it does not explain a bad access.
bool is_explained(const Reading& reading) {
  const Evidence& evidence = reading.evidence;
  if (!evidence.reports.empty() || !evidence.aborts.empty()) return true;
  if (caught_signal(reading)) return true;
  const int signal = reading.process.code;
  return !evidence.checks.empty() && (signal == SIGABRT || signal == SIGTRAP);
}

const ThreadAtEnd::Frame* first_project_frame(const ThreadAtEnd& thread) {
  const auto found = std::ranges::find_if(thread.frames, &ThreadAtEnd::Frame::is_project);
  return found == thread.frames.end() ? nullptr : &*found;
}

// A place in a library, which crashes for many reasons, would be taken for the same failure.
const ThreadAtEnd::Frame* where_it_crashed(const ProcessResult& process) {
  return process.thread_stacks.empty() ? nullptr
                                       : first_project_frame(process.thread_stacks.front());
}

Failure at(Failure failure, const ThreadAtEnd::Frame* frame) {
  if (frame != nullptr) {
    failure.file = frame->file;
    failure.line = frame->line;
    failure.function = frame->function;
  }
  return bounded(std::move(failure));
}

// A function that calls itself endlessly dies at whichever of its lines needs the next page.
bool has_overflown(const ThreadAtEnd& thread, const ThreadAtEnd::Frame& place) {
  constexpr int many = 24;
  return std::ranges::count(thread.frames, place.function, &ThreadAtEnd::Frame::function) > many;
}

Failure crash_of(const ProcessResult& process) {
  const ThreadAtEnd::Frame* place = where_it_crashed(process);
  Failure crash = at(make_failure(FailureKind::signal, "", signal_name(process.code)), place);
  if (place != nullptr && has_overflown(process.thread_stacks.front(), *place)) {
    crash.line = 0;
    crash.message += " (stack overflow)";
  }
  return crash;
}

// A framework that catches the signal and lets it pass says where its last check was, not where
// the test crashed.
bool is_crash_to_be_named(const Reading& reading) {
  if (reading.process.end != ProcessResult::End::signalled) return false;
  if (!is_explained(reading)) return true;
  const Evidence& evidence = reading.evidence;
  return evidence.reports.empty() && evidence.aborts.empty() && caught_signal(reading) &&
         where_it_crashed(reading.process) != nullptr;
}

// The failure that names the outcome first.
std::vector<Failure> failures_of(const Reading& reading) {
  const Evidence& evidence = reading.evidence;
  std::vector<Failure> failures;
  if (!died(reading)) {
    append(failures, evidence.checks);
    append(failures, most_deadly_first(evidence.reports));
    append(failures, evidence.aborts);
    return failures;
  }
  append(failures, most_deadly_first(evidence.reports));
  append(failures, evidence.aborts);
  if (is_crash_to_be_named(reading)) failures.push_back(crash_of(reading.process));
  std::vector<Failure> checks = evidence.checks;
  std::stable_partition(checks.begin(), checks.end(), is_signal);
  append(failures, checks);
  return failures;
}

// A shell reports a child that died of a signal as 128 + its number.
std::string exit_text(int status) {
  const bool of_signal = status > 128 && sigabbrev_np(status - 128);
  return of_signal ? fmt::format("exit status {} (128 + {})", status, signal_name(status - 128))
                   : fmt::format("exit status {}", status);
}

constexpr const char* early_exit =
    "the process exited before its framework reported the end of the test: something called "
    "exit(), or closed standard output";

// That a test began says nothing about why it ended.
bool is_progress(std::string_view line) {
  constexpr std::string_view beginnings[] = {
      "[ RUN  ", "[------", "[======", "[doctest]", "Filters: ", "Randomness seeded to"};
  const bool of_boost = line.starts_with("Running ") && line.ends_with("...");
  return of_boost || std::ranges::any_of(beginnings, [&](std::string_view beginning) {
           return line.starts_with(beginning);
         });
}

bool has_own_checks(const Test& test) {
  return test.framework == Framework::command || test.framework == Framework::ctest;
}

Failure exit_failure(const Reading& reading) {
  std::string_view words = most_telling_line(reading.texts);
  if (reading.broke_off && is_progress(words)) words = early_exit;
  return bounded(
      make_failure(FailureKind::exit_status, exit_text(reading.process.code), shorten(words, 500)));
}

// The status stays what it was known by before its check was read.
std::vector<Failure> failures_of_exit(const Reading& reading) {
  std::vector<Failure> failures;
  if (has_own_checks(reading.test))
    if (auto check = plain_check_in(reading.texts)) failures.push_back(bounded(std::move(*check)));
  failures.push_back(exit_failure(reading));
  return failures;
}

Outcome failing(const Reading& reading, OutcomeKind kind, std::vector<Failure> failures) {
  Outcome outcome;
  outcome.kind = kind;
  outcome.duration = reading.process.duration;
  outcome.failures = std::move(failures);
  outcome.signature = signature_of(outcome.failures.front());
  return outcome;
}

Outcome skipped(const Reading& reading, std::string_view reason) {
  Outcome outcome;
  outcome.kind = OutcomeKind::skipped;
  outcome.duration = reading.process.duration;
  outcome.reason = printable(shorten(reason, 500));
  return outcome;
}

Outcome passing(const Reading& reading) {
  Outcome outcome;
  outcome.duration = reading.process.duration;
  outcome.failures = reading.evidence.reports;
  return outcome;
}

std::string_view remedy(int error) {
  switch (error) {
    case ENOENT:
      return "build the test, then list the suite again";
    case EACCES:
    case ENOEXEC:
      return "check that the file is an executable for this machine";
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
      return "run fewer tests at a time";
    default:
      return "start the command by hand to see more";
  }
}

Outcome not_started(const Reading& reading) {
  const ProcessResult& process = reading.process;
  std::string what = process.error.empty() ? "the process could not be started" : process.error;
  const bool says_what_to_do = !what.empty() && what == reading.test.obstacle;
  if (!says_what_to_do) what += fmt::format("; {}", remedy(process.code));
  Failure failure = make_failure(FailureKind::not_started, "", std::move(what));
  return failing(reading, OutcomeKind::fail, {bounded(std::move(failure))});
}

Outcome not_in_binary(const Reading& reading) {
  Failure failure =
      make_failure(FailureKind::not_started, "",
                   "the binary has no test of this name; list the suite again after a rebuild");
  return failing(reading, OutcomeKind::fail, {std::move(failure)});
}

// Where the test's own thread was: of its first process, or else of the first one that is in
// project code at all.
const ThreadAtEnd::Frame* where_it_hung(const ProcessResult& process) {
  for (const ThreadAtEnd& thread : process.thread_stacks) {
    if (!thread.is_main()) continue;
    if (const ThreadAtEnd::Frame* frame = first_project_frame(thread)) return frame;
  }
  return nullptr;
}

// The stack shows where the test hung. Without one, the framework's report of the signal that ended
// the run shows how far the test had got. Nothing else of what was printed by then belongs to
// the time-out.
Outcome timed_out(const Reading& reading) {
  Failure timeout = make_failure(FailureKind::timeout, "", "");
  std::vector<Failure> others;
  for (const Failure& failure : failures_of(reading)) {
    if (!is_signal(failure) || !failure.message.starts_with("SIGTERM")) {
      others.push_back(failure);
      continue;
    }
    timeout.file = failure.file;
    timeout.line = failure.line;
  }
  if (const ThreadAtEnd::Frame* frame = where_it_hung(reading.process))
    timeout = at(std::move(timeout), frame);
  std::vector<Failure> failures{std::move(timeout)};
  append(failures, others);
  return failing(reading, OutcomeKind::timeout, std::move(failures));
}

// A framework that catches signals exits after a crash.
OutcomeKind kind_of_exit(const Reading& reading, const Failure& primary) {
  if (caught_signal(reading)) return OutcomeKind::crash;
  if (primary.kind == FailureKind::timeout) return OutcomeKind::timeout;
  return OutcomeKind::fail;
}

// Boost.Test runs what a case depends on along with it, and skips the case when that fails.
std::optional<std::string> boost_skip_reason(const Reading& reading) {
  const std::string name = "/" + reading.test.id.name;  // an opened CTest entry's comes before it
  const auto is_about_it = [&](std::string_view line) {
    line = trim(line);
    return consume(line, "Test case \"") && consume_end(line, "\" was skipped") &&
           name.ends_with("/" + std::string(line));
  };
  const auto says_so = [&](std::string_view text) {
    return std::ranges::any_of(split_lines(text), is_about_it);
  };
  if (std::ranges::none_of(reading.texts, says_so)) return std::nullopt;
  return reading.process.code == 0 ? "a precondition does not hold"
                                   : "a test that it depends on failed";
}

std::optional<std::string> own_skip_reason(const Reading& reading) {
  const FrameworkOutput* output = own_output(reading.test);
  const bool is_boost = reading.test.framework == Framework::boost_test;
  if (is_boost && !reading.test.is_entry) return boost_skip_reason(reading);
  if (!output || !output->skip_reason) return std::nullopt;
  const int wanted = output->framework == Framework::catch2 ? catch2_all_skipped : 0;
  if (reading.process.code != wanted || !reading.evidence.checks.empty()) return std::nullopt;
  for (const std::string& text : reading.texts)
    if (auto reason = output->skip_reason(text)) return reason;
  return std::nullopt;
}

// An entry of CTest may pass without running any case.
bool asked_for_a_missing_case(const Reading& reading) {
  const FrameworkOutput* output = own_output(reading.test);
  return output && !reading.test.is_entry && any_text(reading, output->ran_nothing);
}

// What the patterns object to names the outcome, unless the test itself says why.
Outcome exit_outcome(const Reading& reading, std::optional<Failure> forced) {
  std::vector<Failure> failures = failures_of(reading);
  if (forced) {
    const bool says_why = reading.process.code != 0 && !failures.empty();
    failures.insert(says_why ? failures.end() : failures.begin(), bounded(std::move(*forced)));
  }
  if (failures.empty()) append(failures, failures_of_exit(reading));
  const OutcomeKind kind = kind_of_exit(reading, failures.front());
  return failing(reading, kind, std::move(failures));
}

// Whether the exit status is the framework's word. Where CTest's rules decide, the framework
// is not asked; and what was not kept of the output may be what it said.
bool ended_early(const Reading& reading) {
  const PassRule& rule = reading.test.rule;
  if (reading.test.may_exit || rule.will_fail || !rule.pass_patterns.empty()) return false;
  if (reading.process.code != 0 || reading.process.output.dropped() > 0) return false;
  return reading.broke_off;
}

Outcome early_end(const Reading& reading) {
  return exit_outcome(reading, make_failure(FailureKind::exit_status, exit_text(0), early_exit));
}

Outcome exited(const Reading& reading) {
  if (asked_for_a_missing_case(reading)) return not_in_binary(reading);
  if (const auto reason = own_skip_reason(reading)) return skipped(reading, *reason);
  Judgement judgement = judge(reading.test.rule, reading.process.code, reading.pieces);
  if (judgement.kind == OutcomeKind::skipped) return skipped(reading, judgement.reason);
  if (judgement.kind == OutcomeKind::pass)
    return ended_early(reading) ? early_end(reading) : passing(reading);
  return exit_outcome(reading, std::move(judgement.failure));
}

}  // namespace

bool logs_progress(const Test& test) {
  return test.framework == Framework::boost_test && !test.command.argv.empty() &&
         test.command.argv.back() == boost_progress_log;
}

Outcome read_outcome(const Test& test, const ProcessResult& process) {
  const Reading reading = read(test, process);
  switch (process.end) {
    case ProcessResult::End::not_started:
      return not_started(reading);
    case ProcessResult::End::cancelled:
      return skipped(reading, "cancelled");
    case ProcessResult::End::timed_out:
      return timed_out(reading);
    case ProcessResult::End::signalled:
      return failing(reading, OutcomeKind::crash, failures_of(reading));
    case ProcessResult::End::exited:
      break;
  }
  return exited(reading);
}

namespace {

// The sections of a process that ran several tests, each with the number of its test.
class SharedProcess {
 public:
  SharedProcess(const TestOrder& tests, const ProcessResult& process)
      : tests_(tests), process_(process), sections_(tests.all.size()) {
    for (const TextPiece& piece : pieces_of(process)) take(readable_lines(piece));
  }

  Outcome outcome_of(size_t number) const {
    const Test& test = *tests_.all[number];
    const bool was_made = process_.end != ProcessResult::End::not_started &&
                          process_.end != ProcessResult::End::cancelled;
    if (!was_made) return read_outcome(test, process_);
    if (!sections_[number]) return skipped_because(why_not_seen(number));
    const TestSection& section = *sections_[number];
    if (number != last() && !section.has_ended) return skipped_because("its output was not kept");
    return read_outcome(test, tests_.has_processes && section.has_ended ? own_process(section)
                                                                        : alone(section, number));
  }

  const std::vector<size_t>& sequence() const { return sequence_; }

 private:
  std::optional<size_t> last() const {  // that something was told of
    return sequence_.empty() ? std::nullopt : std::optional(sequence_.back());
  }

  void take(const std::string& text) {
    if (tests_.has_processes) {
      for (auto& [number, section] : sections_in_sequence(text))
        if (number < sections_.size()) keep(number, std::move(section));
      return;
    }
    std::vector<std::string> names;
    for (const auto& test : tests_.all) names.push_back(test->id.name);
    for (TestSection& section : sections_in(tests_.last().framework, text, names))
      if (const auto number = number_of(section.name)) keep(*number, std::move(section));
    if (const FrameworkOutput* output = own_output(tests_.last()))
      has_finished_ = has_finished_ || output->finished(text);
  }

  void keep(size_t number, TestSection section) {
    if (sections_[number]) return;
    sections_[number] = std::move(section);
    sequence_.push_back(number);
  }

  // Whoever has no name is the one after the last; where only the run shows the order, the only
  // one that is left.
  std::optional<size_t> number_of(const std::string& name) const {
    const size_t next = last() ? *last() + 1 : 0;
    if (name.empty() && tests_.is_open) return only_one_left();
    if (name.empty()) return next < tests_.all.size() ? std::optional(next) : std::nullopt;
    for (size_t i = 0; i < tests_.all.size(); ++i)
      if (!sections_[i] && is_called(tests_.all[i]->id.name, name)) return i;
    return std::nullopt;
  }

  std::optional<size_t> only_one_left() const {
    if (sequence_.size() + 1 != sections_.size()) return std::nullopt;
    const auto left = std::ranges::find_if(sections_, [](const auto& one) { return !one; });
    return static_cast<size_t>(left - sections_.begin());
  }

  // As the shell reports it: 128 plus the signal.
  ProcessResult own_process(const TestSection& section) const {
    ProcessResult process = process_;
    const bool is_signal = section.code > 128 && section.code < 128 + 65;
    process.end = is_signal ? ProcessResult::End::signalled : ProcessResult::End::exited;
    process.code = is_signal ? section.code - 128 : section.code;
    process.thread_stacks.clear();
    process.duration = section.duration;
    process.output = {section.text, "", section.text.size()};
    return process;
  }

  // Where the process did not come to its end, the last test is the one that ended it.
  ProcessResult alone(const TestSection& section, size_t number) const {
    ProcessResult process = process_;
    const bool is_blamed = number == last() && (process.end != ProcessResult::End::exited ||
                                                !section.has_ended || ends_by_signal(section));
    if (!is_blamed) {
      process.end = ProcessResult::End::exited;
      process.code = section.has_failed ? 1 : 0;
      process.thread_stacks.clear();
    }
    if (section.has_ended) process.duration = section.duration;
    process.output = {section.text, "", section.text.size()};
    return process;
  }

  static bool ends_by_signal(const TestSection& section) {
    const std::vector<Failure> checks = parse_boost_failures(section.text);
    return std::ranges::any_of(checks, is_signal);
  }

  static Outcome skipped_because(std::string reason) {
    Outcome outcome;
    outcome.kind = OutcomeKind::skipped;
    outcome.reason = std::move(reason);
    return outcome;
  }

  std::string why_not_seen(size_t number) const {
    if (last() && (tests_.is_open || number > *last()) && !has_finished_)
      return fmt::format("not reached: {} ended the process",
                         printable(to_string(tests_.all[*last()]->id)));
    return "its framework told nothing of it";
  }

  const TestOrder& tests_;
  const ProcessResult& process_;
  std::vector<std::optional<TestSection>> sections_;
  std::vector<size_t> sequence_;
  bool has_finished_ = false;
};

}  // namespace

void read_outcomes(const TestOrder& tests, ExperimentResult& result) {
  if (tests.is_single()) {
    result.outcome = read_outcome(tests.last(), result.process);
    return;
  }
  const SharedProcess shared(tests, result.process);
  for (size_t i = 0; i < tests.all.size(); ++i) result.outcomes.push_back(shared.outcome_of(i));
  result.outcome = result.outcomes.back();
  result.sequence = shared.sequence();
}

}  // namespace unflake
