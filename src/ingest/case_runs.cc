#include "ingest/case_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ingest/language_failures.h"
#include "output/ci_log/junit_log.h"
#include "output/ci_log/log_programs.h"
#include "output/output_parsers.h"
#include "util/text.h"

namespace unflake {
namespace {

using Run = ReportedFailure::Run;

struct Judged {
  OutcomeKind outcome = OutcomeKind::fail;
  Failure failure;
};

OutcomeKind outcome_of(const Failure& failure) {
  if (failure.kind == FailureKind::signal) return OutcomeKind::crash;
  if (failure.kind == FailureKind::timeout) return OutcomeKind::timeout;
  return OutcomeKind::fail;
}

std::vector<FailureElement> elements_of(const std::vector<const ReportedFailure*>& failures) {
  std::vector<FailureElement> elements;
  for (const ReportedFailure* failure : failures)
    elements.push_back({failure->is_error, failure->message, failure->text.text()});
  return elements;
}

// The whole output of a program stands in the case.
bool is_program(CaseDialect dialect) {
  return dialect == CaseDialect::ctest || dialect == CaseDialect::unflake ||
         dialect == CaseDialect::bazel;
}

std::optional<Judged> judge_program(std::vector<FailureElement> elements,
                                    const std::string& output) {
  for (FailureElement& element : elements)
    if (element.message == "Failed") element.message.clear();  // CTest's word for any status
  CiLog log;
  read_case_output("", elements, output, log);
  if (log.failures.empty() || log.failures.front().failures.empty()) return std::nullopt;
  const Failure& failure = log.failures.front().failures.front();
  return Judged{outcome_of(failure), failure};
}

// What unflake wrote tells the kind of a failure in its own words.
bool tells_more(const Judged& judged, CaseDialect dialect) {
  return dialect != CaseDialect::unflake || judged.failure.kind != FailureKind::exit_status;
}

Judged timeout() {
  Judged judged;
  judged.outcome = OutcomeKind::timeout;
  judged.failure.kind = FailureKind::timeout;
  return judged;
}

// Of unflake's own reports the kind is known where the output tells nothing.
void take_kind(const std::string& type, Judged& judged) {
  for (const FailureKind kind : {FailureKind::signal, FailureKind::exit_status,
                                 FailureKind::not_started, FailureKind::exception})
    if (type == to_string(kind)) judged.failure.kind = kind;
  judged.failure.expression.clear();
  judged.outcome = outcome_of(judged.failure);
}

Judged judge(const std::vector<const ReportedFailure*>& failures, const std::string& output,
             const ReportedCase& reported, CaseDialect dialect) {
  const auto elements = elements_of(failures);
  if (auto read = dialect_failures(elements))
    return {outcome_of(read->failures.front()), std::move(read->failures.front())};
  if (std::ranges::any_of(failures, [](const auto* one) { return tells_timeout(*one); }))
    return timeout();
  if (is_program(dialect))
    if (auto judged = judge_program(elements, output); judged && tells_more(*judged, dialect))
      return *judged;
  Judged judged;
  judged.failure = read_language_failure(*failures.front(), reported.classname, output);
  if (dialect == CaseDialect::unflake) take_kind(failures.front()->type, judged);
  return judged;
}

RunRecord failing(const std::vector<const ReportedFailure*>& failures, const KeptText& case_output,
                  const ReportedCase& reported, CaseDialect dialect) {
  RunRecord run;
  std::string output;
  for (const ReportedFailure* failure : failures) output += failure->output.text();
  output += case_output.text();
  const Judged judged = judge(failures, output, reported, dialect);
  run.outcome = judged.outcome;
  run.failure = judged.failure;
  run.signature = signature_of(judged.failure);
  for (const ReportedFailure* failure : failures) run.output += failure->text.text() + "\n";
  run.output = cut_middle(run.output + output, longest_kept_output);
  return run;
}

void add_tried(Run when, const ReportedCase& reported, CaseDialect dialect,
               std::vector<RunRecord>& runs) {
  static const KeptText no_output;
  for (const ReportedFailure& failure : reported.failures) {
    if (failure.run != when) continue;
    RunRecord run = failing({&failure}, no_output, reported, dialect);
    run.duration = failure.time ? failure.time->duration : unknown_duration;
    if (failure.timestamp) run.started = *failure.timestamp;
    runs.push_back(std::move(run));
  }
}

// CTest reports what it could not start as skipped, and fails all the same.
struct Obstacle {
  std::string_view words, what;
};
constexpr std::array obstacles{
    Obstacle{"Unable to find executable", "not built"},
    Obstacle{"Required Files Missing", "its required file is missing"},
    Obstacle{"Failed to change working directory", "the working directory cannot be entered"},
    Obstacle{"Missing Configuration", "not a test of this configuration"},
};

std::optional<RunRecord> not_started(const ReportedCase& reported) {
  const auto found = std::ranges::find(obstacles, reported.why_not_run, &Obstacle::words);
  if (found == obstacles.end()) return std::nullopt;
  RunRecord run;
  run.outcome = OutcomeKind::fail;
  run.output = reported.output.text();
  Failure failure;
  failure.kind = FailureKind::not_started;
  failure.message = found->what;
  if (const std::string_view path = trim(run.output); !path.empty())
    failure.message += fmt::format(": {}", path);
  run.failure = bounded(std::move(failure));
  run.signature = signature_of(*run.failure);
  return run;
}

// A failure beside <skipped> is one that the test may have.
void add_own(const ReportedCase& reported, CaseDialect dialect, std::vector<RunRecord>& runs) {
  if (auto run = not_started(reported)) return runs.push_back(std::move(*run));
  const bool is_failed = reported.status == ReportedCase::Status::failed;
  std::vector<const ReportedFailure*> own;
  for (const ReportedFailure& failure : reported.failures)
    if (failure.run == Run::last && !reported.is_skipped) own.push_back(&failure);
  static const ReportedFailure no_words;
  if (own.empty() && is_failed && !reported.is_skipped) own.push_back(&no_words);
  RunRecord run;
  if (!own.empty()) run = failing(own, reported.output, reported, dialect);
  const bool is_skipped = reported.is_skipped || reported.status == ReportedCase::Status::not_run;
  if (own.empty() && is_skipped) run.outcome = OutcomeKind::skipped;
  run.duration = reported.time.duration;
  runs.push_back(std::move(run));
}

// A case of unflake's stands for all runs of a test, of which those that passed are only counted.
void add_counted_passes(const ReportedCase& reported, std::vector<RunRecord>& runs) {
  const auto listed = std::ranges::count(runs, OutcomeKind::pass, &RunRecord::outcome);
  RunRecord pass;
  pass.duration = reported.time.duration;
  for (int64_t i = listed; i < reported.runs - reported.failed_runs; ++i) runs.push_back(pass);
}

}  // namespace

void runs_of_case(const ReportedCase& reported, CaseDialect dialect, std::vector<RunRecord>& runs) {
  runs.clear();
  add_tried(Run::before, reported, dialect, runs);
  add_own(reported, dialect, runs);
  add_tried(Run::after, reported, dialect, runs);
  if (dialect == CaseDialect::unflake) add_counted_passes(reported, runs);
  for (size_t i = 0; i < runs.size(); ++i) runs[i].attempt = static_cast<int>(i) + 1;
}

}  // namespace unflake
