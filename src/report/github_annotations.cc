#include "report/github_annotations.h"

#include <fmt/format.h>

#include <map>

#include "report/style.h"
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

}  // namespace unflake
