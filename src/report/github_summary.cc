#include "report/github_summary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "report/markdown_text.h"
#include "report/sink.h"
#include "report/style.h"
#include "stats/rates.h"
#include "util/unique_fd.h"

namespace unflake {
namespace {

constexpr size_t room_for_last_line = 200;

std::string heading_of(const std::string& target, const SessionEnded& ended) {
  std::string text = fmt::format(
      "### unflake: {}\n\n{} passed, {} failed, {} flaky, {} skipped, {} not run",
      markdown_code(target), ended.passed, ended.failed, ended.flaky, ended.skipped, ended.not_run);
  text +=
      fmt::format("; {} in {}", counted(ended.runs.runs(), "run"), format_duration(ended.elapsed));
  if (ended.gate)
    text += fmt::format("\n\n{} of {} in quarantine: these do not fail the build",
                        counted(ended.gate->flaky_known + ended.gate->quarantined, "failing test"),
                        counted(ended.failed + ended.flaky, "failing test"));
  if (ended.mass_failure) text += "\n\nSo much failed that nothing more was tried again.";
  if (ended.interrupted) text += "\n\nThe session was interrupted.";
  return text + "\n";
}

std::string row_of(const NotableTest& test) {
  return fmt::format("| {} | {} | {} | {} |\n", test.status, markdown_code(to_string(test.test)),
                     markdown_code(test.headline.empty() ? test.why : test.headline),
                     rate_text(test.tally.failures, test.tally.failures + test.tally.passes));
}

}  // namespace

void GithubSummary::on(const Event& event) {
  if (const auto* started = std::get_if<SessionStarted>(&event)) target_ = started->target;
  if (const auto* run = std::get_if<RunEnded>(&event)) tests_.take(*run);
  if (const auto* test = std::get_if<TestEnded>(&event)) tests_.take(*test);
  if (const auto* ended = std::get_if<SessionEnded>(&event)) written_ = append(*ended);
}

std::string GithubSummary::table(const SessionEnded& ended, size_t room) const {
  std::string text = heading_of(target_, ended);
  const auto tests = tests_.most_important_first();
  if (!tests.empty()) text += "\n| | test | failure | runs |\n|---|---|---|---|\n";
  for (size_t number = 0; number < tests.size(); ++number) {
    const std::string row = row_of(tests[number]);
    if (text.size() + row.size() + room_for_last_line > room)
      return text + fmt::format("\n{} left out: a summary may have {} KiB.\n",
                                counted(static_cast<long long>(tests.size() - number), "more test"),
                                most_ / 1024);
    text += row;
  }
  return text + "\n";
}

// Other commands of the same step may have written to it.
Result<void> GithubSummary::append(const SessionEnded& ended) const {
  const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  struct stat found {};
  if (!file || ::fstat(file.get(), &found) != 0)
    return internal_error(
        fmt::format("the step's summary cannot be written: {}", std::strerror(errno)), path_);
  const auto taken = static_cast<size_t>(found.st_size);
  const size_t room = taken < most_ ? most_ - taken : 0;
  const std::string text = table(ended, room);
  if (text.size() > room) return {};
  FdSink sink(file.get());
  sink.write(text);
  if (sink.error() == 0) return {};
  return internal_error(
      fmt::format("the step's summary cannot be written: {}", std::strerror(sink.error())), path_);
}

}  // namespace unflake
