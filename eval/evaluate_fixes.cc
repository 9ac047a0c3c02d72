// Asks `unflake prove` about patches that are known to be right or wrong, and writes a section of
// docs/EVALUATION.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "fixes.h"
#include "markdown.h"
#include "subprocess.h"
#include "zoo_repository.h"

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr Duration longest_proof = 60min;

struct EvaluateFixes {
  std::string source = ".";
  std::string build = "build";
  std::string out = "docs/EVALUATION.md";
  std::string budget = "2m";
  std::string reproduce_budget = "1m";
  int runs = 50;
  int schedules = 500;
  int jobs = 3;
  std::vector<std::string> only;
};

class FixEvaluation {
 public:
  explicit FixEvaluation(const EvaluateFixes& command) : command_(command) {}

  Result<int> operator()() {
    if (auto found = find_programs(); !found) return found.error();
    Watch watch(command_.source);
    work();
    if (error_) return *error_;
    std::vector<JudgedFix> all;
    for (auto& [name, judged] : judged_) all.push_back(std::move(judged));
    const std::string section = fixes_section(all, proof_options(), watch.end());
    const std::string text = with_section(contents(command_.out), fixes_heading, section);
    if (auto done = write_file(command_.out, text); !done) return done.error();
    return tell(all);
  }

 private:
  struct Program {
    Truth truth;
    std::vector<FixTruth> fixes;
    std::string main_object;
  };

  Result<void> find_programs() {
    const auto fixes = read_fixes(command_.source + "/zoo/fixes", command_.only);
    if (!fixes) return fixes.error();
    for (const FixTruth& fix : *fixes) {
      auto known = std::ranges::find(programs_, fix.program,
                                     [](const Program& one) { return one.truth.program; });
      if (known == programs_.end()) {
        const auto truths = read_truths(command_.source + "/zoo", {fix.program});
        if (!truths) return truths.error();
        known = programs_.insert(programs_.end(), Program{truths->front(), {}, ""});
        auto object = mains_.object_for(truths->front());
        if (!object) return object.error();
        known->main_object = *object;
      }
      known->fixes.push_back(fix);
    }
    // Whoever takes longest comes first.
    std::ranges::stable_sort(programs_, std::greater(),
                             [](const Program& one) { return one.fixes.size(); });
    return {};
  }

  void work() {
    std::vector<std::jthread> workers;
    for (int i = 0; i < command_.jobs; ++i)
      workers.emplace_back([this] {
        for (size_t number = next_++; number < programs_.size(); number = next_++)
          if (auto done = judge_all(programs_[number]); !done) stop(done.error());
      });
  }

  void stop(const Error& error) {
    const std::lock_guard lock(mutex_);
    error_ = error;
    next_ = programs_.size();
  }

  Result<void> judge_all(const Program& program) {
    ZooRepository place;
    if (auto made = place.make(command_.source + "/zoo", program.truth, program.main_object); !made)
      return made.error();
    if (auto recorded = place.record(unflake(), command_.reproduce_budget); !recorded)
      return recorded.error();
    for (const FixTruth& fix : program.fixes)
      if (auto done = judge(program, place, fix); !done) return done.error();
    return {};
  }

  Words proof_options() const {
    return {"--budget",    command_.budget,
            "-n",          std::to_string(command_.runs),
            "--schedules", std::to_string(command_.schedules)};
  }

  std::string unflake() const { return fs::absolute(command_.build + "/bin/unflake"); }

  Result<void> judge(const Program& program, const ZooRepository& place, const FixTruth& fix) {
    Words words{
        unflake(),
        "prove",
        place.repro(),
        "--json",
        "--patch",
        fs::absolute(command_.source + "/zoo/fixes/" + fix.name + ".patch"),
        "--build",
        compile_line(program.truth, "\"$UNFLAKE_BUILD\"/" + fix.program, program.main_object)};
    const Words options = proof_options();
    words.insert(words.end(), options.begin(), options.end());
    const auto result = run_tool(words, place.path(), longest_proof);
    if (!result) return result.error();
    JudgedFix judged = judged_by(fix, result->output);
    judged.seconds = std::chrono::duration<double>(result->elapsed).count();
    if (judged.verdict == "failed") judged.why = result->errors;
    take(std::move(judged));
    return {};
  }

  void take(JudgedFix judged) {
    const std::lock_guard lock(mutex_);
    fmt::print("{}: {} ({}), {:.0f} s  {}\n", judged.truth.name, judged.verdict,
               judged.is_accepted() == judged.truth.repairs ? "right" : "WRONG", judged.seconds,
               judged.why);
    std::fflush(stdout);
    judged_[judged.truth.name] = std::move(judged);
  }

  static int tell(const std::vector<JudgedFix>& all) {
    int missed = 0;
    for (const Score& score : fix_scores(all)) {
      fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
      missed += !score.met;
    }
    return missed == 0 ? 0 : 1;
  }

  const EvaluateFixes& command_;
  ZooMains mains_{command_.source + "/zoo"};
  std::vector<Program> programs_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::map<std::string, JudgedFix> judged_;
  std::optional<Error> error_;
};

int evaluate_fixes(int argc, char** argv) {
  EvaluateFixes command;
  CLI::App app(
      "Asks unflake prove about right and wrong repairs. Exit code 0: all targets are met; 1: not "
      "all.",
      "evaluate_fixes");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
  app.add_option("--only", command.only, "these patches")->delimiter(',');
  app.add_option("--budget", command.budget, "of each proof [2m]");
  app.add_option("--reproduce-budget", command.reproduce_budget, "of each search [1m]");
  app.add_option("--runs", command.runs, "under the plan, and plain ones [50]");
  app.add_option("--schedules", command.schedules, "sampled for each proof [500]");
  app.add_option("-j,--jobs", command.jobs, "programs side by side [3]");
  CLI11_PARSE(app, argc, argv);
  const auto code = FixEvaluation(command)();
  if (code) return *code;
  fmt::print(stderr, "evaluate_fixes: {}\n", to_string(code.error()));
  return code.error().kind == ErrorKind::usage ? 2 : 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate_fixes(argc, argv);
}
