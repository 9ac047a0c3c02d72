#include "report/junit.h"

#include "report/excerpt.h"
#include "report/progress.h"
#include "util/output_file.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_failures_of_a_test = 10;
constexpr size_t longest_output_in_xml = 16 * 1024;
constexpr size_t most_output = 64 * 1024 * 1024;  // of a session, in memory until its end

std::string details_of(const Outcome& outcome) {
  std::string details;
  for (const Failure& failure : outcome.failures) {
    if (details.size() > longest_text) break;
    const std::string title = bounded_text(headline(failure), longest_text);
    const std::string message = bounded_text(trim(failure.message), longest_text);
    details += title + "\n";
    if (!title.ends_with(message)) details += message + "\n";
  }
  return details;
}

JunitFailure failure_of(const RunEnded& run) {
  const Outcome& outcome = run.result.outcome;
  JunitFailure failure{run.attempt, outcome.kind, std::string(to_string(outcome.kind)), "", "", ""};
  if (!outcome.failures.empty()) {
    failure.type = to_string(outcome.failures.front().kind);
    failure.message = bounded_text(headline(outcome.failures.front()), longest_text);
  }
  failure.details = details_of(outcome);
  return failure;
}

}  // namespace

Result<std::unique_ptr<JunitReport>> JunitReport::create(JunitOptions options) {
  const Result<void> prepared = prepare_output_file(options.path);
  if (!prepared) return prepared.error();
  return std::unique_ptr<JunitReport>(new JunitReport(std::move(options)));
}

void JunitReport::on(const Event& event) {
  std::visit([this](const auto& happened) { take(happened); }, event);
}

void JunitReport::take(const SessionStarted& session) {
  session_ = {.started = session, .ended = {}, .cases = {}, .uuid = {}};
  case_numbers_.clear();
  output_kept_ = 0;
  for (const auto& test : session.tests) case_of(test);
}

// The verdict is kept up to date here: an interrupted session may end without telling the end of
// each test.
void JunitReport::take(const RunEnded& run) {
  if (was_cancelled(run)) return;
  JunitCase& found = case_of(run.test);
  const Outcome& outcome = run.result.outcome;
  found.tally.add(outcome);
  found.verdict = verdict_of(found.tally);
  found.total_time += outcome.duration;
  if (!outcome.reason.empty()) found.reason = bounded_text(outcome.reason, longest_text);
  if (outcome.failed()) keep_failure(found, run);
}

void JunitReport::keep_failure(JunitCase& found, const RunEnded& run) {
  if (found.failures.size() == most_failures_of_a_test) return;
  JunitFailure failure = failure_of(run);
  if (output_kept_ < most_output)
    failure.output = printable_output(run.result.process, longest_output_in_xml);
  output_kept_ += failure.output.size();
  found.failures.push_back(std::move(failure));
}

void JunitReport::take(const TestEnded& test) {
  JunitCase& found = case_of(test.test);
  found.verdict = test.verdict;
  found.gate = test.gate;
  if (!test.reason.empty()) found.reason = bounded_text(test.reason, longest_text);
}

void JunitReport::take(const SessionEnded& session) {
  session_.ended = session;
  if (options_.session_uuid) session_.uuid = options_.session_uuid();
  written_ = replace_file(options_.path, junit_xml(session_, options_.flaky_fails));
}

JunitCase& JunitReport::case_of(const std::shared_ptr<const Test>& test) {
  const auto [number, is_new] = case_numbers_.try_emplace(test->id, session_.cases.size());
  if (is_new) session_.cases.emplace_back().test = test;
  return session_.cases[number->second];
}

}  // namespace unflake
