// Lets `unflake repair` repair the programs of the zoo, and writes a section of docs/EVALUATION.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "markdown.h"
#include "repairs.h"
#include "subprocess.h"
#include "zoo_repository.h"

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr Duration longest_repair = 15min;
constexpr Duration longest_reruns = 5min;

struct EvaluateRepair {
  std::string source = ".";
  std::string build = "build";
  std::string out = "docs/EVALUATION.md";
  std::string budget = "2m";
  std::string proof_budget = "20s";
  std::string reproduce_budget = "1m";
  std::string method = "short-cut";
  std::string compare;
  std::string compare_budget = "1m";
  std::string keep;
  int jobs = 3;
  int reruns = 20;
  std::vector<std::string> only;
};

class RepairEvaluation {
 public:
  explicit RepairEvaluation(const EvaluateRepair& command) : command_(command) {}

  Result<int> operator()() {
    if (auto found = find_programs(); !found) return found.error();
    if (auto built = build_mains(); !built) return built.error();
    Watch watch(command_.source);
    work();
    if (error_) return *error_;
    std::vector<Repaired> all;
    for (auto& [program, repaired] : repaired_) all.push_back(std::move(repaired));
    const std::string section = repairs_section(all, repair_options(), watch.end());
    const std::string text = with_section(contents(command_.out), repairs_heading, section);
    if (auto done = write_file(command_.out, text); !done) return done.error();
    return tell(all);
  }

 private:
  Result<void> find_programs() {
    const auto truths = read_truths(command_.source + "/zoo", command_.only);
    if (!truths) return truths.error();
    for (const Truth& truth : *truths)
      if (truth.family.empty() && wanted_repair(truth) != WantedRepair::none)
        truths_.push_back(truth);
    return {};
  }

  Result<void> build_mains() {
    for (const Truth& truth : truths_) {
      auto object = mains_.object_for(truth);
      if (!object) return object.error();
      main_objects_[truth.framework] = *object;
    }
    return {};
  }

  Words repair_options() const {
    return {"--budget",      command_.budget,  "--method",
            command_.method, "--proof-budget", command_.proof_budget};
  }

  std::string unflake() const { return fs::absolute(command_.build + "/bin/unflake"); }

  void work() {
    std::vector<std::jthread> workers;
    for (int i = 0; i < command_.jobs; ++i)
      workers.emplace_back([this] {
        for (size_t number = next_++; number < truths_.size(); number = next_++)
          take(number, repair(truths_[number]));
      });
  }

  void take(size_t number, Result<Repaired> repaired) {
    const std::lock_guard lock(mutex_);
    if (!repaired) {
      error_ = repaired.error();
      next_ = truths_.size();
      return;
    }
    fmt::print("{}: {}, {:.0f} s and {:.0f} s of builds  {}\n", repaired->truth.program,
               repaired->is_proven()     ? repaired->idiom
               : repaired->says_timing   ? "exact timing"
               : repaired->says_deadlock ? "deadlock"
               : repaired->is_ordered    ? "order only"
                                         : "none",
               repaired->seconds, repaired->build_seconds, repaired->why_not);
    std::fflush(stdout);
    repaired_[number] = std::move(*repaired);
  }

  // What it answers is the result, whatever that is; an error is one of the evaluation itself.
  Result<Repaired> repair(const Truth& truth) const {
    ZooRepository place;
    const std::string object = main_objects_.at(truth.framework);
    if (auto made = place.make(command_.source + "/zoo", truth, object); !made) return made.error();
    Repaired repaired;
    repaired.truth = truth;
    if (auto recorded = place.record(unflake(), command_.reproduce_budget); !recorded) {
      repaired.why_not = recorded.error().what;
      return repaired;
    }
    Words words{unflake(),     "repair",
                place.repro(), "--json",
                "--build",     compile_line(truth, "\"$UNFLAKE_BUILD\"/" + truth.program, object)};
    const Words options = repair_options();
    words.insert(words.end(), options.begin(), options.end());
    const auto result = run_tool(words, place.path(), longest_repair);
    if (!result) return result.error();
    keep(truth, *result);
    repaired =
        repaired_by(truth, result->output, std::chrono::duration<double>(result->elapsed).count());
    if (!result->errors.empty() && !repaired.is_ordered && !repaired.says_timing)
      repaired.why_not += " " + result->errors;
    repaired.reproduce_seconds = place.seconds_to_record();
    if (auto done = compare(place, repaired); !done) return done.error();
    if (repaired.is_proven())
      if (auto run = run_afterwards(place, object, repaired); !run) return run.error();
    return repaired;
  }

  // Another search on the same failure.
  Result<void> compare(const ZooRepository& place, Repaired& repaired) const {
    if (command_.compare.empty()) return {};
    const auto result =
        run_tool({unflake(), "repair", place.repro(), "--json", "--no-patch", "--method",
                  command_.compare, "--budget", command_.compare_budget},
                 place.path(), longest_repair);
    if (!result) return result.error();
    repaired.compared =
        compared_by(command_.compare + " --budget " + command_.compare_budget, result->output,
                    std::chrono::duration<double>(result->elapsed).count());
    return {};
  }

  void keep(const Truth& truth, const ToolResult& result) const {
    if (command_.keep.empty()) return;
    fs::create_directories(command_.keep);
    (void)write_file(command_.keep + "/" + truth.program + ".json", result.output);
  }

  Result<void> run_afterwards(const ZooRepository& place, const std::string& object,
                              Repaired& repaired) const {
    if (auto written = write_file(place.path() + "/build/proven.patch", repaired.diff); !written)
      return written.error();
    const Truth& truth = repaired.truth;
    if (auto built = place.shell("git apply build/proven.patch && " +
                                 compile_line(truth, "build/" + truth.program, object));
        !built)
      return built.error();
    const auto result =
        run_tool(place.words({unflake(), "run"}, {"--json", "--no-history", "--timeout", "30s",
                                                  "-n", std::to_string(command_.reruns)}),
                 place.path(), longest_reruns);
    if (!result) return result.error();
    add_runs(repaired, result->output);
    return {};
  }

  static int tell(const std::vector<Repaired>& all) {
    int missed = 0;
    for (const Score& score : repair_scores(all)) {
      fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
      missed += !score.met;
    }
    return missed == 0 ? 0 : 1;
  }

  const EvaluateRepair& command_;
  ZooMains mains_{command_.source + "/zoo"};
  std::map<std::string, std::string> main_objects_;  // by framework
  std::vector<Truth> truths_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::map<size_t, Repaired> repaired_;
  std::optional<Error> error_;
};

int evaluate_repair(int argc, char** argv) {
  EvaluateRepair command;
  CLI::App app(
      "Lets unflake repair the programs of the zoo. Exit code 0: all targets are met; 1: not all.",
      "evaluate_repair");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
  app.add_option("--only", command.only, "these programs")->delimiter(',');
  app.add_option("--budget", command.budget, "of each search [2m]");
  app.add_option("--proof-budget", command.proof_budget, "of each proof [20s]");
  app.add_option("--reproduce-budget", command.reproduce_budget, "to record a failure [1m]");
  app.add_option("--method", command.method, "short-cut or flakesync [short-cut]");
  app.add_option("--compare", command.compare,
                 "another method, without patches, on the same failures: a second table");
  app.add_option("--compare-budget", command.compare_budget, "of that one [1m]");
  app.add_option("--reruns", command.reruns, "plain runs with a proven patch [20]");
  app.add_option("--keep", command.keep, "a folder for what unflake repair says");
  app.add_option("-j,--jobs", command.jobs, "programs side by side [3]");
  CLI11_PARSE(app, argc, argv);
  const auto code = RepairEvaluation(command)();
  if (code) return *code;
  fmt::print(stderr, "evaluate_repair: {}\n", to_string(code.error()));
  return code.error().kind == ErrorKind::usage ? 2 : 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate_repair(argc, argv);
}
