// Compares `unflake races` with ThreadSanitizer on zoo/interleavings, and writes a section of
// docs/EVALUATION.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "markdown.h"
#include "races.h"
#include "subprocess.h"
#include "support/temp_folder.h"
#include "truth.h"

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr std::string_view folder = "/zoo/interleavings/";
constexpr Duration longest_run = 10s;  // a program that deadlocks is ended
constexpr Duration longest_search = 3min;

struct EvaluateRaces {
  std::string source = ".";
  std::string build = "build";
  std::string out = "docs/EVALUATION.md";
  std::vector<std::string> only;
  RaceSettings settings;
};

class RaceEvaluation {
 public:
  explicit RaceEvaluation(const EvaluateRaces& command) : command_(command) {}

  Result<int> operator()() {
    const auto truths = read_truths(command_.source + "/zoo", command_.only);
    if (!truths) return truths.error();
    Watch watch(command_.source);
    for (const Truth& truth : *truths)
      if (auto done = truth.family == "interleavings" ? measure(truth) : Result<void>(); !done)
        return done.error();
    const std::string section = races_section(all_, command_.settings, watch.end());
    const std::string text = with_section(contents(command_.out), races_heading, section);
    if (auto done = write_file(command_.out, text); !done) return done.error();
    return tell();
  }

 private:
  Result<void> measure(const Truth& truth) {
    MeasuredRaces one;
    one.program = truth.program;
    one.is_sound = truth.expect == "nothing";
    if (auto done = run_tsan(truth, one); !done) return done.error();
    if (auto done = run_unflake(truth, one); !done) return done.error();
    fmt::print("{}: ThreadSanitizer {}, unflake {}\n", one.program, one.tsan.size(),
               one.unflake.size());
    std::fflush(stdout);
    all_.push_back(std::move(one));
    return {};
  }

  static Words tsan_words(const Truth& truth, const std::string& program) {
    Words words{"/usr/bin/env", "TSAN_OPTIONS=detect_deadlocks=0 report_thread_leaks=0 exitcode=0",
                program};
    if (truth.framework == "gtest") words.push_back("--gtest_filter=" + truth.test);
    if (truth.framework == "catch2") words.push_back(truth.test);
    return words;
  }

  Result<void> run_tsan(const Truth& truth, MeasuredRaces& one) const {
    const TempFolder place;
    const std::string program =
        fs::absolute(command_.build + "/zoo/interleavings_tsan/" + truth.program);
    Duration elapsed{};
    for (int i = 0; i < command_.settings.tsan_runs; ++i) {
      const auto result = run_tool(tsan_words(truth, program), place.path(), longest_run);
      if (!result) return result.error();
      elapsed += result->elapsed;
      one.tsan.merge(races_of_tsan(result->errors, folder));
    }
    one.tsan_seconds = std::chrono::duration<double>(elapsed).count();
    return {};
  }

  Result<void> run_unflake(const Truth& truth, MeasuredRaces& one) const {
    const TempFolder place;
    fs::create_directory(place.file(".unflake"));  // a project of its own
    const TestWords target = test_words(
        truth.framework, fs::absolute(command_.build + "/zoo/interleavings/" + truth.program),
        truth.test);
    Words words{fs::absolute(command_.build + "/bin/unflake"), "races"};
    words.insert(words.end(), target.words.begin(), target.words.end());
    words.insert(words.end(), {"--json", "--runs", std::to_string(command_.settings.runs)});
    if (!target.command.empty()) words.push_back("--");
    words.insert(words.end(), target.command.begin(), target.command.end());
    const auto result = run_tool(words, place.path(), longest_search);
    if (!result) return result.error();
    if (result->status > 1)
      return internal_error(fmt::format("exit status {}: {}", result->status, result->errors),
                            truth.program);
    one.unflake = races_of_unflake(result->output, folder);
    one.unflake_seconds = std::chrono::duration<double>(result->elapsed).count();
    return {};
  }

  int tell() const {
    int missed = 0;
    for (const Score& score : race_scores(all_)) {
      fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
      missed += !score.met;
    }
    return missed == 0 ? 0 : 1;
  }

  const EvaluateRaces& command_;
  std::vector<MeasuredRaces> all_;
};

int evaluate_races(int argc, char** argv) {
  EvaluateRaces command;
  CLI::App app(
      "Compares unflake races with ThreadSanitizer. Exit code 0: all targets are met; 1: not all.",
      "evaluate_races");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
  app.add_option("--only", command.only, "these programs")->delimiter(',');
  app.add_option("--runs", command.settings.runs, "schedules of each program [20]");
  app.add_option("--tsan-runs", command.settings.tsan_runs, "plain runs of each program [20]");
  CLI11_PARSE(app, argc, argv);
  const auto code = RaceEvaluation(command)();
  if (code) return *code;
  fmt::print(stderr, "evaluate_races: {}\n", to_string(code.error()));
  return code.error().kind == ErrorKind::usage ? 2 : 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate_races(argc, argv);
}
