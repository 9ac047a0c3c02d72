// Measures `unflake reproduce` on the zoo, against the truth, and writes docs/EVALUATION.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "balance_section.h"
#include "detect_replay.h"
#include "document.h"
#include "fixes.h"
#include "markdown.h"
#include "measure.h"
#include "races.h"
#include "repairs.h"
#include "support/temp_folder.h"

namespace unflake::eval {
namespace {

namespace fs = std::filesystem;

struct EvaluateCommand {
  std::string source = ".";
  std::string build = "build";
  std::string out = "docs/EVALUATION.md";
  std::string results = "build/eval/results.json";
  std::string append;
  std::vector<std::string> only;
  std::string budget = "60s", strategy_budget = "5s";
  bool rewrite = false;
  EvalSettings settings;
};

class Evaluation {
 public:
  explicit Evaluation(EvaluateCommand& command) : command_(command) {}

  Result<int> operator()() {
    auto truths = read_truths(command_.source + "/zoo", command_.only);
    if (!truths) return truths.error();
    truths_ = std::move(*truths);
    if (auto done = command_.rewrite ? load() : measure_all(); !done) return done.error();
    std::vector<Measured> all;
    for (const Measurement& result : results_.programs)
      for (const Truth& truth : truths_)
        if (truth.path() == result.program) all.push_back({&truth, &result});
    const std::string appended = command_.append.empty() ? "" : contents(command_.append);
    std::string text = document(results_, all, appended);
    for (const char* heading :
         {repeatability_heading, races_heading, fixes_heading, repairs_heading, factors_heading,
          orders_heading, bisect_heading, suite_heading, detect_heading, balance_heading})
      text = with_section(text, heading, section_of(contents(command_.out), heading));
    if (auto done = write_file(command_.out, text); !done) return done.error();
    int missed = 0;
    for (const Score& score : scores_of(all, results_.settings)) {
      fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
      missed += !score.met;
    }
    return missed == 0 ? 0 : 1;
  }

 private:
  Result<void> load() {
    auto results = parse_results(contents(command_.results), command_.results);
    if (!results) return results.error();
    results_ = std::move(*results);
    return {};
  }

  Result<void> measure_all() {
    results_.settings = command_.settings;
    Watch watch(command_.source);
    results_.programs.resize(truths_.size());
    // Whose time counts is measured as a user would see it: alone.
    on_all(1, [this](size_t i) { search(i, true); });
    on_all(command_.settings.jobs, [this](size_t i) { search(i, false); });
    if (error_) return *error_;
    on_all(command_.settings.jobs, [this](size_t i) { measure_rest_of(i); });
    if (error_) return *error_;
    replay_all(&Measurement::replays);
    const BusyProcesses beside(command_.settings.busy);
    replay_all(&Measurement::busy_replays);
    results_.where = watch.end();
    return write_file(command_.results, results_json(results_));
  }

  // Replays mostly wait, and nobody measures how long they take: twice as many at once.
  void replay_all(Replays Measurement::*where) {
    on_all(2 * command_.settings.jobs, [this, where](size_t i) {
      Measurement& one = results_.programs[i];
      if (!one.search.found || !truths_[i].lateness_can_cause_it) return;
      one.*where = replay_found(truths_[i], tools_, command_.settings);
      const std::lock_guard lock(mutex_);
      const Replays& replays = one.*where;
      fmt::print("{}: replays {}/{}\n", one.program, replays.as_recorded, replays.runs);
      std::fflush(stdout);
    });
  }

  template <class Use>
  void on_all(int workers_at_once, Use use) {
    std::atomic<size_t> next = 0;
    std::vector<std::thread> workers;
    for (int i = 0; i < workers_at_once; ++i)
      workers.emplace_back([&] {
        for (size_t at = next++; at < truths_.size() && !error_; at = next++) use(at);
      });
    for (std::thread& worker : workers) worker.join();
  }

  void search(size_t i, bool is_timed) {
    if (truths_[i].lateness_can_cause_it != is_timed) return;
    auto measured = measure_search(truths_[i], tools_, command_.settings);
    const std::lock_guard lock(mutex_);
    if (!measured) {
      error_ = measured.error();
      return;
    }
    tell(*measured);
    results_.programs[i] = std::move(*measured);
  }

  void measure_rest_of(size_t i) {
    const auto done = measure_rest(truths_[i], tools_, command_.settings, results_.programs[i]);
    const std::lock_guard lock(mutex_);
    if (!done) error_ = done.error();
  }

  void tell(const Measurement& one) {
    const Search& search = one.search;
    fmt::print("[{}/{}] {}: {} in {:.1f} s\n", ++done_, truths_.size(), one.program,
               search.found ? "found by " + search.found_by : "nothing found",
               static_cast<double>(search.elapsed_us) / 1e6);
    std::fflush(stdout);
  }

  EvaluateCommand& command_;
  std::vector<Truth> truths_;
  Results results_;
  const TempFolder repros_;
  const Tools tools_{fs::absolute(command_.build + "/bin/unflake"),
                     fs::absolute(command_.build + "/zoo"), repros_.path()};
  std::mutex mutex_;  // of what follows, and of the elements of results_.programs
  size_t done_ = 0;
  std::optional<Error> error_;
};

Result<void> read_durations(EvaluateCommand& command) {
  const auto budget = parse_duration(command.budget);
  if (!budget) return budget.error();
  const auto strategy_budget = parse_duration(command.strategy_budget);
  if (!strategy_budget) return strategy_budget.error();
  command.settings.budget_us = budget->count();
  command.settings.strategy_budget_us = strategy_budget->count();
  return {};
}

int evaluate(int argc, char** argv) {
  EvaluateCommand command;
  CLI::App app("Measures unflake on its zoo. Exit code 0: all targets are met; 1: not all.",
               "evaluate");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
  app.add_option("--results", command.results, "the figures behind it [build/eval/results.json]");
  app.add_option("--append", command.append, "a file with further sections");
  app.add_option("--only", command.only, "these programs")->delimiter(',');
  app.add_option("--replays", command.settings.replays, "of each reproduction [100]");
  app.add_option("-j,--jobs", command.settings.jobs, "programs side by side [2]")
      ->check(CLI::Range(1, 64));
  app.add_option("--busy", command.settings.busy, "processes beside the second replays [8]")
      ->check(CLI::Range(0, 64));
  app.add_option("--reruns", command.settings.reruns, "plain runs of each program [200]");
  app.add_option("--budget", command.budget, "of a search [60s]");
  app.add_option("--strategy-budget", command.strategy_budget, "of a strategy alone [5s]");
  app.add_flag("--strategies", command.settings.with_strategies,
               "compare strategies, too: each alone on every program");
  app.add_flag("--rewrite", command.rewrite,
               "the document from the last results, without measuring");
  CLI11_PARSE(app, argc, argv);
  const auto read = read_durations(command);
  const auto code = read ? Evaluation(command)() : Result<int>(read.error());
  if (code) return *code;
  fmt::print(stderr, "evaluate: {}\n", to_string(code.error()));
  return code.error().kind == ErrorKind::usage ? 2 : 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate(argc, argv);
}
