// What the agent costs a test that runs under it: ratios of runs with it and without, in turn.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "run/local_executor.h"

namespace unflake {
namespace {

constexpr int rounds = 9;

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<long>(values.size() / 2));
  return values[values.size() / 2];
}

struct Pair {
  double plain = 0;
  double with_agent = 0;
  double ratio() const { return with_agent / plain; }
};

class AgentBench {
 public:
  AgentBench() : executor_(std::move(*LocalExecutor::create({}, interrupts_))) {}

  ExperimentResult run(const std::vector<std::string>& argv, const Plan& plan) {
    auto test = std::make_shared<unflake::Test>();
    test->id = {argv[0], "bench"};
    test->command.argv = argv;
    auto result = executor_->run({test, plan, std::chrono::minutes(5), false});
    if (!result || result->process.end != ProcessResult::End::exited) {
      fmt::print("{} could not be run: {}\n", argv[0],
                 result ? result->process.output.text() : to_string(result.error()));
      std::exit(1);
    }
    return std::move(*result);
  }

  // The rounds alternate, so that a busy machine hits both.
  Pair compare(const std::vector<std::string>& argv, const Plan& plan, int times,
               const std::function<double(const ExperimentResult&)>& measure) {
    std::vector<double> plain, with_agent;
    run(argv, plan);
    for (int i = 0; i < times; ++i) {
      plain.push_back(measure(run(argv, {})));
      with_agent.push_back(measure(run(argv, plan)));
    }
    return {median(plain), median(with_agent)};
  }

 private:
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_;
};

Plan counting() {
  Plan plan;
  plan.id = "bench";
  plan.agent = true;
  return plan;
}

Plan profiling() {
  Plan plan = counting();
  plan.calls = plan.stacks = true;
  return plan;
}

bool print(const std::string& what, const Pair& pair, const std::string& unit, double bound) {
  const bool holds = pair.ratio() <= bound;
  fmt::print("{:<52} {:8.2f} / {:8.2f} {:<3} = {:5.2f} (at most {:.2f}){}\n", what, pair.with_agent,
             pair.plain, unit, pair.ratio(), bound, holds ? "" : "  MISSED");
  return holds;
}

double printed_number(const ExperimentResult& result) {
  return std::atof(result.process.output.text().c_str());
}

double milliseconds(const ExperimentResult& result) {
  return std::chrono::duration<double, std::milli>(result.process.duration).count();
}

double mebibytes(const ExperimentResult& result) {
  return static_cast<double>(result.process.max_rss_kib) / 1024;
}

// How much later than asked for a delayed thread goes on, on the average over many delays.
bool print_accuracy(AgentBench& bench, const std::string& program) {
  constexpr auto asked = std::chrono::milliseconds(2);
  const auto learned = bench.run({program, "1"}, profiling());
  Plan plan = counting();
  for (const TracedSite& site : learned.trace->sites) {
    if (site.name.api != "pthread_create") continue;
    Intervention late;
    late.site = site.name;
    late.duration = asked;
    plan.interventions = {late};
  }
  std::vector<double> overshoot;
  for (int i = 0; i < 101 && !plan.interventions.empty(); ++i) {
    const auto result = bench.run({program, "1"}, plan);
    const TracedIntervention& done = result.trace->interventions.at(0);
    if (done.fired == 0) continue;
    const auto late = std::chrono::duration<double, std::milli>(done.added);
    overshoot.push_back(late.count() / static_cast<double>(done.fired) - asked.count());
  }
  const double typical = overshoot.empty() ? 1e9 : median(overshoot);
  fmt::print("{:<52} {:8.3f} ms (at most 0.1; median of {})\n", "a delay of 2 ms is longer by",
             typical, overshoot.size());
  return typical <= 0.1;
}

bool run_all(const std::string& folder) {
  AgentBench bench;
  bool holds = true;
  for (const char* threads : {"1", "2"})
    holds &=
        print(fmt::format("lock + unlock, counted / plain, {} thread(s)", threads),
              bench.compare({folder + "/lock_loop", threads}, counting(), rounds, printed_number),
              "ns", 2.0);
  holds &= print("profile run / plain run of a zoo test",
                 bench.compare({folder + "/../zoo/late_delivery"}, profiling(), 201, milliseconds),
                 "ms", 1.05);
  const Pair memory =
      bench.compare({folder + "/../zoo/late_delivery"}, profiling(), rounds, mebibytes);
  const double added = memory.with_agent - memory.plain;
  fmt::print("{:<52} {:8.2f} MiB (at most 16)\n", "memory added to the target", added);
  const bool exact = print_accuracy(bench, folder + "/lock_loop");
  return holds && added <= 16 && exact;
}

}  // namespace
}  // namespace unflake

int main() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  return unflake::run_all(self.parent_path().string()) ? 0 : 1;
}
