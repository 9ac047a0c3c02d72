// Asks `unflake prove` about patches that are known to be right or wrong, and writes a section of
// docs/EVALUATION.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

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
  std::vector<std::string> only;
};

class FixEvaluation {
 public:
  explicit FixEvaluation(const EvaluateFixes& command) : command_(command) {}

  Result<int> operator()() {
    const auto fixes = read_fixes(command_.source + "/zoo/fixes", command_.only);
    if (!fixes) return fixes.error();
    Watch watch(command_.source);
    for (const FixTruth& fix : *fixes)
      if (auto done = judge(fix); !done) return done.error();
    const std::string section = fixes_section(all_, proof_options(), watch.end());
    const std::string text = with_section(contents(command_.out), fixes_heading, section);
    if (auto done = write_file(command_.out, text); !done) return done.error();
    return tell();
  }

 private:
  Words proof_options() const {
    return {"--budget",    command_.budget,
            "-n",          std::to_string(command_.runs),
            "--schedules", std::to_string(command_.schedules)};
  }

  std::string unflake() const { return fs::absolute(command_.build + "/bin/unflake"); }

  Result<void> judge(const FixTruth& fix) {
    const auto place = place_of(fix.program);
    if (!place) return place.error();
    const Truth& truth = truths_.at(fix.program);
    Words words{
        unflake(),         "prove",
        (*place)->repro(), "--json",
        "--patch",         fs::absolute(command_.source + "/zoo/fixes/" + fix.name + ".patch"),
        "--build",         compile_line(truth, "\"$UNFLAKE_BUILD\"/" + fix.program)};
    const Words options = proof_options();
    words.insert(words.end(), options.begin(), options.end());
    const auto result = run_tool(words, (*place)->path(), longest_proof);
    if (!result) return result.error();
    JudgedFix judged = judged_by(fix, result->output);
    judged.seconds = std::chrono::duration<double>(result->elapsed).count();
    if (judged.verdict == "failed") judged.why = result->errors;
    fmt::print("{}: {} ({}), {:.0f} s  {}\n", fix.name, judged.verdict,
               judged.is_accepted() == fix.repairs ? "right" : "WRONG", judged.seconds, judged.why);
    std::fflush(stdout);
    all_.push_back(std::move(judged));
    return {};
  }

  Result<ZooRepository*> place_of(const std::string& program) {
    if (const auto known = places_.find(program); known != places_.end()) return &known->second;
    const auto truths = read_truths(command_.source + "/zoo", {program});
    if (!truths) return truths.error();
    truths_[program] = truths->front();
    ZooRepository& place = places_[program];
    if (auto made = place.make(command_.source + "/zoo", truths->front()); !made)
      return made.error();
    if (auto recorded = place.record(unflake(), command_.reproduce_budget); !recorded)
      return recorded.error();
    return &place;
  }

  int tell() const {
    int missed = 0;
    for (const Score& score : fix_scores(all_)) {
      fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
      missed += !score.met;
    }
    return missed == 0 ? 0 : 1;
  }

  const EvaluateFixes& command_;
  std::map<std::string, ZooRepository> places_;
  std::map<std::string, Truth> truths_;
  std::vector<JudgedFix> all_;
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
