// Measures `unflake balance` on the timed programs of the zoo, and writes its section of
// docs/EVALUATION.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "balance_section.h"
#include "markdown.h"
#include "measure_balance.h"
#include "subprocess.h"
#include "support/temp_folder.h"

namespace unflake::eval {
namespace {

namespace fs = std::filesystem;

constexpr const char* frameworks[] = {"gtest", "catch2", "doctest", "boost"};
constexpr std::chrono::hours longest_part{6};

struct EvaluateBalance {
  std::string source = ".";
  std::string build = "build";
  std::string out = "docs/EVALUATION.md";
  std::string results = "build/eval/balance.json";
  std::vector<std::string> only;
  bool skip_fatb = false, skip_suites = false, skip_loads = false, rewrite = false, part = false,
       resume = false;
  bool skip_real_time = false;
  BalanceSettings settings;
};

class BalanceEvaluation {
 public:
  explicit BalanceEvaluation(EvaluateBalance& command) : command_(command) {}

  Result<int> operator()() {
    auto truths = read_timed_truths(command_.source + "/zoo/timed", names(false));
    if (!truths) return truths.error();
    truths_ = std::move(*truths);
    if (!command_.only.empty() && names(false).empty()) truths_.clear();  // only suites
    if (auto done = command_.rewrite ? load() : measure_all(); !done) return done.error();
    return command_.part ? Result<int>(0) : write();
  }

 private:
  // Of those that were asked for, the suites or the programs.
  std::vector<std::string> names(bool suites) const {
    std::vector<std::string> some;
    for (const std::string& name : command_.only)
      if (name.starts_with("suite_") == suites) some.push_back(name);
    return some;
  }

  Result<void> load() {
    auto results = parse_balance_results(contents(command_.results), command_.results);
    if (!results) return results.error();
    results_ = std::move(*results);
    return {};
  }

  Result<void> measure_all() {
    command_.settings.real_time = !command_.skip_real_time && prefer_own_work(true);
    results_.settings = command_.settings;
    if (command_.resume)
      if (auto done = take_up(); !done) return done;
    return command_.part ? measure_here() : measure_parts();
  }

  // What an evaluation that did not end has measured.
  Result<void> take_up() {
    if (!fs::exists(command_.results)) return {};
    if (auto done = load(); !done) return done;
    if (results_.settings == command_.settings) return {};
    return usage_error("this has measured with other settings; repeat them, or leave out --resume",
                       command_.results);
  }

  std::vector<std::string> suites() const {
    if (!command_.only.empty()) return names(true);
    std::vector<std::string> all;
    for (const char* framework : frameworks) all.push_back(std::string("suite_") + framework);
    return command_.settings.with_suites ? all : std::vector<std::string>();
  }

  Result<void> measure_here() {
    Watch watch(command_.source);
    const BalanceTools tools{fs::absolute(command_.build + "/bin/unflake"),
                             fs::absolute(command_.build + "/zoo/timed"),
                             fs::absolute(command_.source + "/zoo/timed/support/config.toml")};
    for (const TimedTruth& truth : truths_) {
      auto measured = measure_program(truth, tools, command_.settings);
      if (!measured) return measured.error();
      results_.programs.push_back(std::move(*measured));
      tell(truth, results_.programs.back());
    }
    for (const std::string& suite : suites()) {
      auto measured = measure_suite(suite.substr(suite.find('_') + 1), tools, command_.settings);
      if (!measured) return measured.error();
      results_.suites.push_back(std::move(*measured));
      fmt::print("{}: {:.2f} s measured of {:.2f} s claimed\n", suite,
                 totals_of({results_.suites.back()}).measured_s,
                 totals_of({results_.suites.back()}).claimed_s);
    }
    results_.where = watch.end();
    return write_file(command_.results, balance_results_json(results_));
  }

  // Those that take longest first. What computes is measured alone; no suite does.
  std::vector<std::string> parts_to_measure(bool alone) const {
    std::vector<std::string> parts = alone ? std::vector<std::string>() : suites();
    for (const TimedTruth& truth : truths_)
      if (truth.computes() == alone) parts.push_back(truth.program);
    const auto suite_of = [](const SuiteMeasurement& one) { return one.answer.suite; };
    std::erase_if(parts, [&](const std::string& part) {
      return std::ranges::find(results_.programs, part, &TimedMeasurement::program) !=
                 results_.programs.end() ||
             std::ranges::find(results_.suites, part, suite_of) != results_.suites.end();
    });
    return parts;
  }

  // Each part is a process of its own, so that none can disturb the bookkeeping of another.
  Result<void> measure_parts() {
    Watch watch(command_.source, results_.where);
    measure_parts(parts_to_measure(false), command_.settings.jobs, watch);
    measure_parts(parts_to_measure(true), 1, watch);
    if (error_) return *error_;
    return {};
  }

  void measure_parts(const std::vector<std::string>& parts, int at_once, Watch& watch) {
    std::atomic<size_t> next = 0;
    std::vector<std::thread> workers;
    for (int i = 0; i < at_once; ++i)
      workers.emplace_back([&] {
        for (size_t part = next++; part < parts.size() && !has_failed(); part = next++)
          keep(measure_part(parts[part]), watch);
      });
    for (std::thread& worker : workers) worker.join();
  }

  Result<BalanceResults> measure_part(const std::string& name) const {
    const TempFolder folder;
    const std::string file = folder.file("results.json");
    const BalanceSettings& how = command_.settings;
    std::vector<std::string> words{fs::read_symlink("/proc/self/exe"),
                                   "--part",
                                   "--only",
                                   name,
                                   "--results",
                                   file,
                                   "--source",
                                   fs::absolute(command_.source),
                                   "--build",
                                   fs::absolute(command_.build),
                                   fmt::format("--checks={}", how.checks),
                                   fmt::format("--repeat={}", how.repeat),
                                   fmt::format("--suite-runs={}", how.suite_runs),
                                   fmt::format("--load-runs={}", how.load_runs)};
    if (!how.with_fatb) words.push_back("--skip-fatb");
    if (!how.with_loads) words.push_back("--skip-loads");
    if (!how.real_time) words.push_back("--skip-real-time");
    const auto ran = run_tool(words, folder.path(), longest_part);
    if (!ran) return ran.error();
    fmt::print("{}", ran->output);
    std::fflush(stdout);
    return parse_balance_results(contents(file), name + ": " + ran->errors);
  }

  bool has_failed() {
    const std::lock_guard lock(mutex_);
    return error_.has_value();
  }

  // On disk at once: an evaluation takes hours, and may be ended at any time.
  void keep(Result<BalanceResults> part, Watch& watch) {
    const std::lock_guard lock(mutex_);
    if (!part) {
      error_ = part.error();
      return;
    }
    for (TimedMeasurement& program : part->programs)
      results_.programs.push_back(std::move(program));
    for (SuiteMeasurement& suite : part->suites) results_.suites.push_back(std::move(suite));
    results_.where = watch.end();
    const auto written = write_file(command_.results, balance_results_json(results_));
    if (!written) error_ = written.error();
  }

  static void tell(const TimedTruth& truth, const TimedMeasurement& one) {
    for (const CheckedProposal& proposal : one.proposals) {
      fmt::print("{}: {} runs", truth.program, proposal.answer.runs);
      for (const ProposalCase& checked : cases_of(truth, proposal, one.base))
        fmt::print(", {} {}", checked.lines.front(), to_string(checked.place));
      fmt::print("{}{}\n", proposal.answer.error.empty() ? "" : ": ", proposal.answer.error);
    }
    std::fflush(stdout);
  }

  Result<int> write() {
    std::vector<MeasuredTimes> all;
    std::vector<std::string> not_measured;
    for (const TimedTruth& truth : truths_) {
      const auto result =
          std::ranges::find(results_.programs, truth.program, &TimedMeasurement::program);
      if (result == results_.programs.end())
        not_measured.push_back(truth.program);
      else
        all.push_back({&truth, &*result});
    }
    const std::string text = with_section(contents(command_.out), balance_heading,
                                          balance_section(results_, all, not_measured));
    if (auto done = write_file(command_.out, text); !done) return done.error();
    int missed = 0;
    for (const Score& score : balance_scores(all, results_)) {
      fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
      missed += !score.met;
    }
    return missed == 0 ? 0 : 1;
  }

  EvaluateBalance& command_;
  std::vector<TimedTruth> truths_;
  std::mutex mutex_;  // of what follows, while parts are measured
  BalanceResults results_;
  std::optional<Error> error_;
};

void add_options(CLI::App& app, EvaluateBalance& command) {
  BalanceSettings& how = command.settings;
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
  app.add_option("--results", command.results, "the figures behind it [build/eval/balance.json]");
  app.add_option("--only", command.only, "these programs, or suite_FRAMEWORK")->delimiter(',');
  app.add_option("--repeat", how.repeat, "searches of each program [2]")->check(CLI::Range(1, 100));
  app.add_option("--checks", how.checks, "reruns of a proposal [1000]")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--suite-runs", how.suite_runs, "reruns of each test of a suite [100]");
  app.add_option("--load-runs", how.load_runs, "reruns at each load [200]");
  app.add_option("-j,--jobs", how.jobs, "programs side by side, which may disturb [1]")
      ->check(CLI::Range(1, 64));
  app.add_flag("--skip-fatb", command.skip_fatb, "do not compare with FaTB");
  app.add_flag("--skip-suites", command.skip_suites, "no suite mode");
  app.add_flag("--skip-loads", command.skip_loads, "an idle machine only");
  app.add_flag("--skip-real-time", command.skip_real_time, "with the priority that others have");
  app.add_flag("--resume", command.resume, "keep what an evaluation that was ended has measured");
  app.add_flag("--part", command.part, "write the results, and no document");
  app.add_flag("--rewrite", command.rewrite,
               "the section from the last results, without measuring");
}

int evaluate_balance(int argc, char** argv) {
  EvaluateBalance command;
  CLI::App app("Measures unflake balance on its zoo. Exit code 0: all targets are met; 1: not all.",
               "evaluate_balance");
  add_options(app, command);
  CLI11_PARSE(app, argc, argv);
  command.settings.with_fatb = !command.skip_fatb;
  command.settings.with_suites = !command.skip_suites;
  command.settings.with_loads = !command.skip_loads;
  const auto code = BalanceEvaluation(command)();
  if (code) return *code;
  fmt::print(stderr, "evaluate_balance: {}\n", to_string(code.error()));
  return code.error().kind == ErrorKind::usage ? 2 : 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate_balance(argc, argv);
}
