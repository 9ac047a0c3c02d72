#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "golden/compare.h"
#include "golden/make_events.h"
#include "golden/script.h"
#include "report/consumers.h"
#include "report/terminal.h"
#include "support/temp_folder.h"
#include "util/text.h"

namespace unflake::golden {
namespace {

namespace fs = std::filesystem;

TerminalOptions options_with(Verbosity verbosity, const Duration& now) {
  TerminalOptions options;
  options.verbosity = verbosity;
  options.clock = [&now] { return now; };
  options.output_lines = 5;
  options.summary.repeat_order = [](uint64_t seed) { return "--seed " + std::to_string(seed); };
  options.summary.next_step = [](const TestId& id, Verdict verdict) {
    return verdict == Verdict::flaky ? "look closer: " + to_string(id) : "";
  };
  return options;
}

std::string terminal_text(const std::vector<Event>& events, Verbosity verbosity,
                          bool colour = false) {
  Duration now{};
  StringSink sink;
  TerminalOptions options = options_with(verbosity, now);
  options.colour = colour;
  TerminalReport report(sink, options);
  for (const Event& event : events) {
    report.on(event);
    now += 250ms;
  }
  return sink.text;
}

std::string junit_text(const std::vector<Event>& events) {
  const TempFolder folder;
  const std::string path = folder.file("junit.xml");
  const auto report = JunitReport::create({path, false});
  for (const Event& event : events) (*report)->on(event);
  return read_file(path);
}

TEST(Golden, Terminal) {
  compare_with_golden("terminal.txt", terminal_text(session_with_retries(), Verbosity::normal));
}

TEST(Golden, Terminal_quiet) {
  compare_with_golden("terminal_quiet.txt",
                      terminal_text(session_with_retries(), Verbosity::quiet));
}

TEST(Golden, Terminal_verbose) {
  compare_with_golden("terminal_verbose.txt",
                      terminal_text(session_with_retries(), Verbosity::verbose));
}

TEST(Golden, Terminal_in_colour_with_the_escape_sequences_spelt_out) {
  const std::string text = terminal_text(session_with_retries(), Verbosity::quiet, true);
  compare_with_golden("terminal_colour.txt", printable(text, LineFeeds::keep));
}

TEST(Golden, Terminal_with_repeats) {
  compare_with_golden("terminal_repeats.txt",
                      terminal_text(session_with_repeats(), Verbosity::normal));
}

TEST(Golden, Terminal_with_a_gate) {
  compare_with_golden("terminal_gate.txt", terminal_text(session_with_gate(), Verbosity::quiet));
}

TEST(Golden, Junit_with_a_gate) {
  compare_with_golden("junit_gate.xml", junit_text(session_with_gate()));
}

TEST(Golden, Json_lines_with_a_gate) {
  StringSink sink;
  JsonLines lines(sink);
  for (const Event& event : session_with_gate())
    if (std::holds_alternative<TestEnded>(event) || std::holds_alternative<SessionEnded>(event))
      lines.on(event);
  compare_with_golden("events_gate.jsonl", sink.text);
}

TEST(Golden, Json_lines) {
  StringSink sink;
  JsonLines lines(sink);
  for (const Event& event : session_with_retries()) lines.on(event);
  compare_with_golden("events.jsonl", sink.text);
}

TEST(Golden, Junit) {
  compare_with_golden("junit.xml", junit_text(session_with_retries()));
}

TEST(Golden, Junit_with_repeats) {
  compare_with_golden("junit_repeats.xml", junit_text(session_with_repeats()));
}

TEST(Golden, Junit_is_well_formed_and_names_every_test_once) {
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(junit_text(session_with_retries()).c_str()));
  std::multiset<std::string> names;
  for (const pugi::xpath_node found : document.select_nodes("//testcase"))
    names.insert(std::string(found.node().attribute("classname").value()) + "." +
                 found.node().attribute("name").value());
  EXPECT_EQ(names.size(), 10u);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

}  // namespace
}  // namespace unflake::golden
