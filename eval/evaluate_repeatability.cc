// Runs every program of the zoo many times under one schedule, counts how often that gave the same
// run, and writes a section of docs/EVALUATION.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>

#include "document.h"
#include "markdown.h"
#include "run/local_executor.h"
#include "scores.h"
#include "search/trial/trial_runner.h"
#include "surroundings.h"
#include "truth.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr Duration longest_run = 60s;
constexpr uint64_t seed = 7;
constexpr int runs_at_once = 2;
constexpr int runs_of_open = 100;  // what is not closed need not repeat

struct Repeated {
  std::string program;
  int runs = 0;
  std::map<uint64_t, int> digests;
  std::map<std::string, int> reasons;  // why runs may not repeat

  bool is_closed() const { return reasons.empty(); }
  int the_same() const {
    int most = 0;
    for (const auto& [digest, count] : digests) most = std::max(most, count);
    return most;
  }
};

std::shared_ptr<const Test> test_of(const std::string& program) {
  auto test = std::make_shared<Test>();
  test->id = {fs::path(program).filename(), "run"};
  test->command.argv = {program};
  return test;
}

void add(Repeated& repeated, const ExperimentResult& result) {
  ++repeated.runs;
  if (!result.trace || !result.trace->controlled) {
    ++repeated.reasons["it was not controlled"];
    return;
  }
  const ControlledRun& run = *result.trace->controlled;
  ++repeated.digests[run.digest];
  if (!run.not_repeatable.empty()) ++repeated.reasons[run.not_repeatable];
}

Plan plan_with_schedule() {
  Plan plan;
  plan.id = "repeatability";
  plan.agent = true;
  plan.schedule.emplace();
  plan.schedule->sampler = Sampler::random_walk;
  plan.schedule->seed = seed;
  return plan;
}

struct EvaluateRepeatability {
  std::string source = ".";
  std::string build = "build";
  std::string out = "docs/EVALUATION.md";
  std::vector<std::string> only;
  int runs = 1000;
};

class RepeatabilityEvaluation {
 public:
  explicit RepeatabilityEvaluation(const EvaluateRepeatability& command) : command_(command) {}

  Result<int> operator()() {
    const auto truths = read_truths(command_.source + "/zoo", command_.only);
    if (!truths) return truths.error();
    LocalOptions options;
    options.jobs = runs_at_once;
    auto executor = LocalExecutor::create(options, interrupts_);
    if (!executor) return executor.error();
    Watch watch(command_.source);
    for (const Truth& truth : *truths)
      if (auto done = repeat(**executor, truth.path()); !done) return done.error();
    const std::string text =
        with_section(contents(command_.out), repeatability_heading, section(watch.end()));
    if (auto done = write_file(command_.out, text); !done) return done.error();
    fmt::print("{}: {}\n", score().figure, score().measured);
    return score().met ? 0 : 1;
  }

 private:
  Result<void> repeat(Executor& executor, const std::string& path) {
    Repeated repeated;
    repeated.program = path;
    EventStream nobody;
    TrialRunner runner(executor, test_of(fs::absolute(command_.build + "/zoo/" + path)), nobody,
                       longest_run * command_.runs);
    runner.run_series({plan_with_schedule(), {}, ""}, TrialRunner::Purpose::look, longest_run,
                      {command_.runs, runs_at_once}, [&](const Observation& seen) {
                        add(repeated, seen.result);
                        return !repeated.is_closed() && repeated.runs >= runs_of_open;
                      });
    if (runner.error()) return *runner.error();
    if (runner.stopped()) return internal_error("stopped", path);
    fmt::print("{}: {} of {} the same{}\n", path, repeated.the_same(), repeated.runs,
               repeated.is_closed() ? "" : "; " + repeated.reasons.begin()->first);
    std::fflush(stdout);
    all_.push_back(std::move(repeated));
    return {};
  }

  Score score() const {
    int closed = 0;
    std::vector<std::string> others;
    for (const Repeated& one : all_) {
      closed += one.is_closed();
      if (one.is_closed() && one.the_same() < one.runs)
        others.push_back(fmt::format("{} ({} of {})", one.program, one.the_same(), one.runs));
    }
    const int repeats = closed - static_cast<int>(others.size());
    return {"programs whose runs under one schedule are all the same, of the closed ones",
            fmt::format("{} of {}{}", repeats, closed,
                        others.empty() ? "" : "; not: " + join(others, ", ")),
            "all", others.empty()};
  }

  std::string section(const Surroundings& where) const {
    std::string text = fmt::format(
        "{}\n\nEvery program ran {} times under one random walk, {} runs side by side; one that is "
        "not closed ran {} times. Two runs are the same when a "
        "digest of all decisions is. A program is closed\nwhen nothing that control does not reach "
        "takes part in it; for the others, unflake names what does.\n\n",
        repeatability_heading, command_.runs, runs_at_once, runs_of_open);
    text += to_string(where) + "\n\n" + targets_text({score()}) + "\n";
    text += table_head({"program that is not closed", "the same", "what takes part in it"});
    for (const Repeated& one : all_) {
      if (one.is_closed()) continue;
      text += row({one.program, fmt::format("{} of {}", one.the_same(), one.runs),
                   cell(one.reasons.begin()->first)});
    }
    return text;
  }

  const EvaluateRepeatability& command_;
  Interrupts interrupts_;
  std::vector<Repeated> all_;
};

int evaluate_repeatability(int argc, char** argv) {
  EvaluateRepeatability command;
  CLI::App app("Counts how often a schedule gives the same run. Exit code 0: always; 1: not.",
               "evaluate_repeatability");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
  app.add_option("--only", command.only, "these programs")->delimiter(',');
  app.add_option("--runs", command.runs, "of each program [1000]")->check(CLI::Range(2, 100'000));
  CLI11_PARSE(app, argc, argv);
  const auto code = RepeatabilityEvaluation(command)();
  if (code) return *code;
  fmt::print(stderr, "evaluate_repeatability: {}\n", to_string(code.error()));
  return code.error().kind == ErrorKind::usage ? 2 : 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate_repeatability(argc, argv);
}
