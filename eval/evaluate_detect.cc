// Replays measured failure rates through the rerun scheduler, and writes a section of
// docs/EVALUATION.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "detect_replay.h"
#include "markdown.h"

namespace unflake::eval {
namespace {

struct EvaluateDetect {
  std::string source = ".";
  std::string rates = "../shared/data/flakeflagger-rates.csv";
  std::string out = "docs/EVALUATION.md";
  std::vector<std::string> only;
  ReplaySettings settings;
};

ReplayResult told(ReplayResult result, const std::string& name) {
  const Spread half = result.found_in_half_the_time();
  fmt::print(
      "{}: {:.1f} in {:.0f} s by rerunning everything; as many in {:.3f} times that; {:.1f} "
      "({:.0f}..{:.0f}) in half of it\n",
      name, result.everything.detections, result.everything.seconds, result.share_of_time(),
      half.mean, half.min, half.max);
  std::fflush(stdout);
  return result;
}

Result<int> evaluate(const EvaluateDetect& command) {
  const auto rates = read_rates(command.rates);
  if (!rates) return rates.error();
  Watch watch(command.source);
  const std::vector<ReplayedProject> projects = projects_of(*rates, command.settings);
  if (!command.only.empty()) {  // a look, without a document
    for (const ReplayedProject& project : projects)
      if (std::ranges::count(command.only, project.name) > 0)
        told(replay_result({&project}, command.settings), project.name);
    return 0;
  }
  DetectFigures figures;
  figures.settings = command.settings;
  figures.source = std::filesystem::path(command.rates).filename();
  std::vector<const ReplayedProject*> all;
  for (const ReplayedProject& project : projects) {
    all.push_back(&project);
    figures.alone.push_back(told(replay_result({&project}, command.settings), project.name));
  }
  figures.together = told(replay_result(all, command.settings), "all on one clock");
  const std::string section = detect_section(figures, watch.end());
  if (auto done =
          write_file(command.out, with_section(contents(command.out), detect_heading, section));
      !done)
    return done.error();
  int missed = 0;
  for (const Score& score : detect_scores(figures)) {
    fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
    missed += !score.met;
  }
  return missed == 0 ? 0 : 1;
}

int evaluate_detect(int argc, char** argv) {
  EvaluateDetect command;
  CLI::App app(
      "Replays measured failure rates through the rerun scheduler. Exit code 0: all targets are "
      "met; "
      "1: not all.",
      "evaluate_detect");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--rates", command.rates,
                 "CSV file with the columns project,test,passes,failures,seconds "
                 "[../shared/data/flakeflagger-rates.csv]");
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
  app.add_option("--only", command.only, "show only this project, and write nothing");
  app.add_option("--repetitions", command.settings.repetitions, "[20]")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--seed", command.settings.seed, "of the first repetition [1]");
  app.add_option("--runs", command.settings.most_runs, "of each test, rerunning everything [170]")
      ->check(CLI::Range(2, 1'000'000));
  CLI11_PARSE(app, argc, argv);
  const auto code = evaluate(command);
  if (code) return *code;
  fmt::print(stderr, "evaluate_detect: {}\n", to_string(code.error()));
  return code.error().kind == ErrorKind::usage ? 2 : 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate_detect(argc, argv);
}
