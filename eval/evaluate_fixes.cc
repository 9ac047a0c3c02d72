// Asks `unflake prove` about patches that are known to be right or wrong, and writes a section of
// docs/EVALUATION.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

#include "fixes.h"
#include "markdown.h"
#include "subprocess.h"
#include "support/temp_folder.h"

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr Duration longest_compile = 10min;
constexpr Duration longest_search = 10min;
constexpr Duration longest_proof = 60min;
constexpr const char* program_folder = "build/";

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

// A repository with one program of the zoo, and the failure of it that was recorded.
struct ProgramPlace {
  TempFolder folder;
  std::string repro;
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

  Result<ToolResult> tool(const Words& words, const std::string& folder, Duration at_most) const {
    return run_tool(words, folder, at_most);
  }

  Result<void> judge(const FixTruth& fix) {
    const auto place = place_of(fix.program);
    if (!place) return place.error();
    const Truth& truth = truths_.at(fix.program);
    Words words{
        unflake(),       "prove",
        (*place)->repro, "--json",
        "--patch",       fs::absolute(command_.source + "/zoo/fixes/" + fix.name + ".patch"),
        "--build",       compile_line(truth, "\"$UNFLAKE_BUILD\"/" + fix.program)};
    const Words options = proof_options();
    words.insert(words.end(), options.begin(), options.end());
    const auto result = tool(words, (*place)->folder.path(), longest_proof);
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

  Result<ProgramPlace*> place_of(const std::string& program) {
    if (const auto known = places_.find(program); known != places_.end()) return &known->second;
    const auto truths = read_truths(command_.source + "/zoo", {program});
    if (!truths) return truths.error();
    truths_[program] = truths->front();
    ProgramPlace& place = places_[program];
    if (auto made = make(truths->front(), place); !made) return made.error();
    return &place;
  }

  Result<void> make(const Truth& truth, ProgramPlace& place) const {
    const std::string& folder = place.folder.path();
    const std::string zoo = command_.source + "/zoo";
    fs::create_directories(folder + "/zoo");
    fs::create_directories(folder + "/" + program_folder);
    fs::copy(zoo + "/" + truth.program + ".cc", folder + "/zoo");
    for (const char* name : {"support", "mains"})
      fs::copy(zoo + "/" + name, folder + "/zoo/" + name, fs::copy_options::recursive);
    if (auto done = shell("git init -q . && echo build/ > .gitignore && git add -A && git -c "
                          "user.name=zoo -c user.email=zoo@example.org commit -q -m zoo",
                          folder, 1min);
        !done)
      return done.error();
    const std::string executable = program_folder + truth.program;
    if (auto done = shell(compile_line(truth, executable), folder, longest_compile); !done)
      return done.error();
    return record(truth, executable, place);
  }

  Result<void> shell(const std::string& line, const std::string& folder, Duration at_most) const {
    const auto result = tool({"/bin/sh", "-ec", line}, folder, at_most);
    if (!result) return result.error();
    if (result->status == 0) return {};
    return internal_error(result->errors, line);
  }

  Result<void> record(const Truth& truth, const std::string& executable,
                      ProgramPlace& place) const {
    const TestWords target = test_words(truth.framework, place.folder.file(executable), truth.test);
    place.repro = place.folder.file("repro.json");
    Words words{unflake(), "reproduce"};
    words.insert(words.end(), target.words.begin(), target.words.end());
    words.insert(words.end(), {"--failure", truth.failure_word(), "--budget",
                               command_.reproduce_budget, "--out", place.repro});
    if (!target.command.empty()) words.push_back("--");
    words.insert(words.end(), target.command.begin(), target.command.end());
    const auto result = tool(words, place.folder.path(), longest_search);
    if (!result) return result.error();
    if (fs::exists(place.repro)) return {};
    return internal_error("its failure was not reproduced: " + result->errors, truth.program);
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
  std::map<std::string, ProgramPlace> places_;
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
