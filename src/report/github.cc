#include "report/consumers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "report/layout.h"
#include "stats/rates.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t longest_message = 2000;

// What ends a command or one of its properties.
std::string escaped(std::string_view text, bool is_property) {
  std::string safe;
  for (const char c : text) {
    const bool ends = c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','));
    safe += ends ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return safe;
}

std::string runs_text(const Tally& tally) {
  return fmt::format("{} of {} failed", tally.failures,
                     counted(tally.failures + tally.passes, "run"));
}

std::string message_of(const NotableTest& test) {
  std::string text = test.headline;
  if (test.tally.runs() > 0)
    text += fmt::format("{}{}", text.empty() ? "" : "\n", runs_text(test.tally));
  if (!test.why.empty()) text += "\n" + test.why;
  return printable(shorten(text, longest_message), LineFeeds::keep);
}

std::string command_of(const NotableTest& test, const std::string& path) {
  std::string properties =
      fmt::format("title={}", escaped(one_line(test.status + ": " + to_string(test.test)), true));
  if (!path.empty()) properties += ",file=" + escaped(printable(path), true);
  if (!path.empty() && test.line > 0) properties += fmt::format(",line={}", test.line);
  return fmt::format("::{} {}::{}\n", to_string(test.level), properties,
                     escaped(message_of(test), false));
}

}  // namespace

void GithubAnnotations::on(const Event& event) {
  if (std::holds_alternative<SessionStarted>(event))
    sink_.write(fmt::format("::stop-commands::{}\n", options_.secret));
  if (const auto* run = std::get_if<RunEnded>(&event)) tests_.take(*run);
  if (const auto* test = std::get_if<TestEnded>(&event)) tests_.take(*test);
  if (!std::holds_alternative<SessionEnded>(event)) return;
  sink_.write(fmt::format("::{}::\n", options_.secret));
  annotate();
}

void GithubAnnotations::annotate() {
  std::map<NotableTest::Level, size_t> told;
  size_t left_out = 0;
  for (const NotableTest& test : tests_.most_important_first()) {
    if (++told[test.level] > most_annotations)
      ++left_out;
    else
      sink_.write(command_of(test, options_.path_of ? options_.path_of(test.file) : ""));
  }
  if (left_out > 0)
    sink_.write(fmt::format("{} annotated: GitHub shows {} of a kind\n",
                            counted(static_cast<long long>(left_out), "more test") +
                                (left_out == 1 ? " is not" : " are not"),
                            most_annotations));
}

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
