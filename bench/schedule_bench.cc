// What it costs to decide who goes on: of one step under control and without, in turn; and how many
// controlled runs there are in a second.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "run/local_executor.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr int rounds = 5;

Plan controlled() {
  Plan plan;
  plan.id = "bench";
  plan.agent = true;
  plan.schedule.emplace();
  return plan;
}

class ScheduleBench {
 public:
  explicit ScheduleBench(std::string folder)
      : folder_(std::move(folder)), executor_(std::move(*LocalExecutor::create({}, interrupts_))) {}

  std::shared_ptr<const unflake::Test> test_of(const std::vector<std::string>& argv) const {
    auto test = std::make_shared<unflake::Test>();
    test->id = {argv[0], "bench"};
    test->command.argv = argv;
    return test;
  }

  ExperimentResult run(const std::string& what, const Plan& plan) {
    return finished(executor_->run({test_of({folder_ + "/turn_loop", what}), plan, 5min, false}));
  }

  static ExperimentResult finished(Result<ExperimentResult> result) {
    const std::string why = !result ? to_string(result.error()) : trouble_of(*result);
    if (why.empty()) return std::move(*result);
    fmt::print("a run failed: {}\n", why);
    std::exit(1);
  }

  static std::string trouble_of(const ExperimentResult& result) {
    const bool is_controlled = result.trace != nullptr && result.trace->controlled;
    if (is_controlled && !result.trace->controlled->deadlock.empty()) return "";
    if (result.outcome.failed())
      return fmt::format("{}, {}", to_string(result.outcome.kind), result.process.output.text());
    return is_controlled ? result.trace->controlled->not_repeatable : "";
  }

  // The rounds alternate, and the best of each counts.
  bool print_step(const std::string& text, const std::string& what, const Plan& plan,
                  double at_most) {
    double plain = 1e18, with_control = 1e18;
    for (int i = 0; i < rounds; ++i) {
      plain = std::min(plain, printed(run(what, {})));
      with_control = std::min(with_control, printed(run(what, plan)));
    }
    const bool holds = with_control <= at_most;
    fmt::print("{:<52} {:8.1f} ns, plain {:.1f} (at most {:.0f}){}\n", text, with_control, plain,
               at_most, holds ? "" : "  MISSED");
    return holds;
  }

  Plan at_accesses() {
    Plan plan = controlled();
    plan.schedule->find_accesses = true;
    const auto profile = run("accesses", plan);
    plan.schedule->find_accesses = false;
    plan.schedule->accesses = profile.trace->controlled->shared_accesses;
    plan.schedule->hot_accesses = profile.trace->controlled->hot_accesses;
    return plan;
  }

  // Until the deadlock is told, the start of the program included.
  bool print_deadlock() {
    std::vector<Duration> times;
    for (int i = 0; i < 11; ++i) {
      const auto result = run("crossed", controlled());
      if (result.trace->controlled->deadlock.empty()) std::exit(1);
      times.push_back(result.process.duration);
    }
    std::ranges::sort(times);
    const bool holds = times[5] <= 100ms;
    fmt::print("{:<52} {:8.1f} ms (at most 100; median of {}){}\n", "a deadlock is told within",
               milliseconds(times[5]), times.size(), holds ? "" : "  MISSED");
    return holds;
  }

  // From the fork server, one after the other: the most in a second.
  bool print_rate() {
    constexpr int runs = 200;
    const auto test = test_of({folder_ + "/../zoo/late_delivery"});
    double best = 0;
    for (int round = 0; round < rounds; ++round) {
      const Duration began = executor_->elapsed();
      for (int i = 0; i < runs; ++i)
        finished(executor_->run({test, controlled(), 1min, false, true}));
      best = std::max(best, runs * 1000 / milliseconds(executor_->elapsed() - began));
    }
    const bool holds = best >= 500;
    fmt::print("{:<52} {:8.0f} (at least 500){}\n", "controlled runs of a zoo test in 1 s", best,
               holds ? "" : "  MISSED");
    return holds;
  }

 private:
  static double printed(const ExperimentResult& result) {
    return std::atof(result.process.output.text().c_str());
  }
  static double milliseconds(Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  }

  std::string folder_;
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_;
};

bool run_all(const std::string& folder) {
  ScheduleBench bench(folder);
  bool holds = bench.print_step("a hooked call, alone", "alone", controlled(), 50);
  holds &= bench.print_step("a hooked call without a switch", "calls", controlled(), 120);
  holds &= bench.print_step("a switch to another thread, with its calls", "switches", controlled(),
                            4000);
  // One that reads and one that writes.
  holds &= bench.print_step("two memory accesses", "accesses", bench.at_accesses(), 2 * 5000);
  holds &= bench.print_deadlock();
  holds &= bench.print_rate();
  return holds;
}

}  // namespace
}  // namespace unflake

int main() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  return unflake::run_all(self.parent_path().string()) ? 0 : 1;
}
