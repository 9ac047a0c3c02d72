#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "output/ci_log/ci_log.h"
#include "output/read_outcome.h"
#include "support/fixtures.h"
#include "support/temp_folder.h"
#include "util/text.h"

namespace unflake {
namespace {

using Decoration = std::function<std::string(std::string_view line, size_t number)>;

struct Style {
  const char* name;
  Decoration decorate;
};

std::string actions(std::string_view line, size_t number) {
  return fmt::format("2024-05-01T12:00:{:02}.1234567Z {}\r\n", number % 60, line);
}

std::string gitlab(std::string_view line, size_t number) {
  return fmt::format("2024-05-01T12:00:{:02}.123456Z 01O {}\n", number % 60, line);
}

std::string jenkins(std::string_view line, size_t number) {
  return fmt::format("[2024-05-01T12:00:{:02}.123Z] {}\n", number % 60, line);
}

std::string teamcity(std::string_view line, size_t number) {
  return fmt::format("[12:00:{:02}]W:\t [Step 2/3] {}\n", number % 60, line);
}

std::string compose(std::string_view line, size_t) {
  return fmt::format("server-tests-1  | {}\n", line);
}

std::string coloured(std::string_view line, size_t) {
  return fmt::format("\x1b[0;32m{}\x1b[0m\n", line);
}

std::string of_gh(std::string_view line, size_t number) {
  return "test (debug)\tRun tests\t" + actions(line, number);
}

const Style styles[] = {
    {"plain", [](std::string_view line, size_t) { return std::string(line) + "\n"; }},
    {"GitHub Actions", actions},
    {"GitLab", gitlab},
    {"Jenkins", jenkins},
    {"TeamCity", teamcity},
    {"docker compose", compose},
    {"colours", coloured},
    {"gh run view", of_gh},
};

std::string decorated(const std::string& text, const Style& style) {
  std::string log;
  size_t number = 0;
  for (const std::string_view line : split_lines(text)) log += style.decorate(line, ++number);
  return log;
}

struct Sample {
  unflake::Test test;
  Outcome outcome;
  std::string log;
};

// As the shell of a CI job does.
std::string last_words(const ProcessResult& process) {
  if (process.end != ProcessResult::End::signalled) return "";
  return process.code == SIGSEGV ? "\nSegmentation fault (core dumped)\n"
                                 : "\nAborted (core dumped)\n";
}

// Every test alone; those that do not end are left out.
std::vector<Sample> failing_runs(const std::string& program, Framework framework) {
  TestLauncher launcher;
  std::vector<Sample> runs;
  for (const unflake::Test& test : list_fixture(program, framework)) {
    if (test.disabled || test.id.name.find("ang") != std::string::npos) continue;
    const ProcessResult process = launcher.launch(test.command, std::chrono::seconds(60));
    const Outcome outcome = read_outcome(test, process);
    if (outcome.failed())
      runs.push_back({test, outcome, whole_output(process) + last_words(process)});
  }
  return runs;
}

bool is_told(const Sample& sample, const CiLog& log) {
  for (const LoggedFailure& logged : log.failures)
    if (is_named(logged, sample.test) && !logged.failures.empty() &&
        signature_of(logged.failures.front()) == sample.outcome.signature)
      return true;
  return false;
}

std::string told_by(const CiLog& log) {
  std::string text;
  for (const LoggedFailure& logged : log.failures)
    text += fmt::format("  {} {}\n", logged.test,
                        logged.failures.empty() ? "?" : headline(logged.failures.front()));
  return text;
}

void expect_all_told(const std::vector<Sample>& runs, const std::string& text) {
  for (const Style& style : styles) {
    const auto log = read_ci_log(decorated(text, style));
    ASSERT_TRUE(log) << to_string(log.error());
    for (const Sample& sample : runs)
      EXPECT_TRUE(is_told(sample, *log))
          << style.name << ": " << sample.test.id.name << " "
          << headline(sample.outcome.failures.front()) << "\nthe log has\n"
          << told_by(*log);
  }
}

class CiLogOfRuns : public testing::TestWithParam<std::pair<const char*, Framework>> {
 protected:
  // Whether the failure is in the log at all; GoogleTest's exits without a word.
  static bool shows(const Sample& sample) {
    return sample.outcome.failures.front().kind != FailureKind::exit_status &&
           sample.outcome.failures.front().kind != FailureKind::unexpected_pass;
  }

  const std::vector<Sample> runs_ = [] {
    auto runs = failing_runs(GetParam().first, GetParam().second);
    std::erase_if(runs, [](const Sample& sample) { return !shows(sample); });
    return runs;
  }();
};

TEST_P(CiLogOfRuns, Tells_of_each_failure_with_the_signature_of_the_run) {
  ASSERT_GE(runs_.size(), 3u);
  for (const Sample& sample : runs_) expect_all_told({sample}, sample.log);
}

TEST_P(CiLogOfRuns, Tells_the_failures_of_many_programs_apart) {
  std::string text = "$ make check\n";
  for (const Sample& sample : runs_) text += "./run one\n" + sample.log;
  expect_all_told(runs_, text);
}

TEST_P(CiLogOfRuns, Tells_the_failures_of_one_program_apart) {
  std::vector<Sample> exiting = runs_;
  std::erase_if(exiting,
                [](const Sample& sample) { return sample.outcome.kind == OutcomeKind::crash; });
  TestLauncher launcher;
  std::vector<std::string> argv{fixture(GetParam().first)};
  if (GetParam().second == Framework::gtest)
    argv.push_back("--gtest_filter=-Ending.Hangs:Ending.Crashes:Ending.Aborts:Ending.Exits*");
  const ProcessResult process = launcher.launch({argv, {}, ""}, std::chrono::seconds(60));
  expect_all_told(exiting, whole_output(process));
}

INSTANTIATE_TEST_SUITE_P(Of, CiLogOfRuns,
                         testing::Values(std::pair{"gtest_cases", Framework::gtest},
                                         std::pair{"catch2_cases", Framework::catch2},
                                         std::pair{"doctest_cases", Framework::doctest},
                                         std::pair{"boost_cases", Framework::boost_test}),
                         [](const auto& info) { return std::string(info.param.first); });

// The framework's own JUnit file of each failing test. Some reporters lose what the console shows.
size_t told_in_junit(const std::string& program, Framework framework,
                     std::function<std::vector<std::string>(const std::string& file)> report_to) {
  const TempFolder folder;
  TestLauncher launcher;
  size_t told = 0;
  for (const Sample& sample : failing_runs(program, framework)) {
    const std::string file = folder.file("report.xml");
    Command command = sample.test.command;
    for (const std::string& argument : report_to(file)) command.argv.push_back(argument);
    launcher.launch(command, std::chrono::seconds(60));
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    const auto log = read_ci_log(text.str());
    if (log && is_told(sample, *log)) ++told;
    std::filesystem::remove(file);
  }
  return told;
}

using Arguments = std::vector<std::string>;

TEST(JunitOfRuns, Catch2_tells_of_failures_with_the_signatures_of_the_runs) {
  EXPECT_GE(told_in_junit("catch2_cases", Framework::catch2,
                          [](const std::string& file) {
                            return Arguments{"--reporter", "junit", "--out", file};
                          }),
            3u);
}

// It has no place for an exception.
TEST(JunitOfRuns, Doctest_tells_of_failures_with_the_signatures_of_the_runs) {
  EXPECT_GE(told_in_junit("doctest_cases", Framework::doctest,
                          [](const std::string& file) {
                            return Arguments{"--reporters=junit", "--out=" + file};
                          }),
            2u);
}

TEST(JunitOfRuns, Boost_tells_of_failures_with_the_signatures_of_the_runs) {
  EXPECT_GE(told_in_junit("boost_cases", Framework::boost_test,
                          [](const std::string& file) {
                            return Arguments{"--log_format=JUNIT", "--log_sink=" + file};
                          }),
            3u);
}

// It is written at the end only, so a crash leaves none.
TEST(JunitOfRuns, Googletest_tells_of_failures_with_the_signatures_of_the_runs) {
  EXPECT_GE(told_in_junit(
                "gtest_cases", Framework::gtest,
                [](const std::string& file) { return Arguments{"--gtest_output=xml:" + file}; }),
            3u);
}

}  // namespace
}  // namespace unflake
