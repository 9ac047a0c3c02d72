// What it costs to trace which functions each test of a program executes, beside running the tests
// plainly. Exits with 1 when a bound is missed.
//
//   trace_bench [TEST-PROGRAM [GLOB...]]   [search_test, which has some 25,000 functions]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "run/local_executor.h"
#include "suite/adapter.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_tests = 60;
constexpr int rounds = 5;

using Tests = std::vector<std::shared_ptr<const unflake::Test>>;
using Clock = std::chrono::steady_clock;

double ms(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Evenly from all over the suite.
Tests some_tests(const std::string& program, const std::vector<std::string>& globs,
                 Launcher& launcher) {
  const auto framework = recognise(program);
  if (!framework) return {};
  const Target target{"bench", *framework, program, {}};
  const auto listed = adapter_for(*framework).list(target, {}, launcher);
  Tests tests;
  if (!listed) return tests;
  std::vector<const unflake::Test*> wanted;
  for (const unflake::Test& test : *listed)
    if (!test.disabled && (globs.empty() || std::ranges::any_of(globs, [&](const auto& glob) {
                             return glob_match(glob, test.id.name);
                           })))
      wanted.push_back(&test);
  const size_t step = std::max<size_t>(1, wanted.size() / most_tests);
  for (size_t i = 0; i < wanted.size() && tests.size() < most_tests; i += step)
    tests.push_back(std::make_shared<unflake::Test>(*wanted[i]));
  return tests;
}

struct Way {
  std::string name;
  bool traces = false, forks = false;
  std::map<std::string, double> wall{}, cpu{};  // by test, the least of all rounds
  std::vector<double> cpu_of_rounds{};
  double prepared_ms = 0;  // everything around the runs, in the last round
  size_t functions = 0;
};

Plan plan_of(const Way& way) {
  Plan plan;
  plan.agent = plan.functions = plan.callees = way.traces;
  return plan;
}

void keep_least(std::map<std::string, double>& all, const std::string& test, double value) {
  const auto [known, is_new] = all.try_emplace(test, value);
  if (!is_new) known->second = std::min(known->second, value);
}

bool run_all(LocalExecutor& executor, const Tests& tests, Way& way) {
  const auto begun = Clock::now();
  double inside = 0, cpu = 0;
  way.functions = 0;
  for (const auto& test : tests) {
    const auto result =
        executor.run({test, plan_of(way), std::chrono::minutes(5), false, way.forks});
    if (!result || result->process.end == ProcessResult::End::not_started) {
      fmt::print("{} could not be run\n", test->id.name);
      return false;
    }
    const ProcessResult& process = result->process;
    keep_least(way.wall, test->id.name, ms(process.duration));
    keep_least(way.cpu, test->id.name, ms(process.user_cpu + process.system_cpu));
    cpu += ms(process.user_cpu + process.system_cpu);
    inside += ms(process.duration);
    if (result->trace) way.functions += result->trace->functions.size();
  }
  way.cpu_of_rounds.push_back(cpu);
  way.prepared_ms =
      std::chrono::duration<double, std::milli>(Clock::now() - begun).count() - inside;
  return true;
}

double sum(const std::map<std::string, double>& all) {
  double total = 0;
  for (const auto& [test, value] : all) total += value;
  return total;
}

void describe(const Way& way, size_t tests) {
  const auto count = static_cast<double>(tests);
  fmt::print("{:<34} {:8.2f} ms of processor time, {:8.2f} ms, {:6.2f} ms around it, of a test\n",
             way.name, sum(way.cpu) / count, sum(way.wall) / count, way.prepared_ms / count);
}

// Of the least times, and how far the rounds lie apart.
double ratio(const std::string& what, const Way& one, const Way& other, double bound) {
  const double value = sum(one.cpu) / sum(other.cpu);
  std::vector<double> of_rounds;
  for (size_t i = 0; i < one.cpu_of_rounds.size(); ++i)
    of_rounds.push_back(one.cpu_of_rounds[i] / other.cpu_of_rounds[i]);
  const auto [least, most] = std::ranges::minmax(of_rounds);
  fmt::print(
      "{:<60} {:6.2f} ({:.2f}..{:.2f}){}\n", what, value, least, most,
      bound > 0 ? fmt::format(" (at most {:.2f}){}", bound, value > bound ? "  MISSED" : "") : "");
  return value;
}

int bench(const std::string& program, const std::vector<std::string>& globs) {
  Interrupts interrupts;
  auto executor = LocalExecutor::create({}, interrupts);
  if (!executor) return 1;
  const Tests tests = some_tests(program, globs, **executor);
  if (tests.empty()) return fmt::print("no tests in {}\n", program), 1;
  std::vector<Way> ways = {{"plain", false, false},
                           {"plain, from a fork server", false, true},
                           {"traced", true, false},
                           {"traced, from a fork server", true, true}};
  for (int round = 0; round < rounds; ++round)  // alternating: a busy machine hits all of them
    for (Way& way : ways)
      if (!run_all(**executor, tests, way)) return 1;
  fmt::print("{} tests, {} functions executed by each on average\n", tests.size(),
             ways[3].functions / tests.size());
  for (const Way& way : ways) describe(way, tests.size());
  ratio("traced / plain, each in a process of its own", ways[2], ways[0], 0);
  ratio("traced / plain, both from a fork server", ways[3], ways[1], 0);
  const double value =
      ratio("traced as `detect` does / plain as everybody does", ways[3], ways[0], 1.05);
  return value <= 1.05 ? 0 : 1;
}

}  // namespace
}  // namespace unflake

int main(int argc, char** argv) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  return unflake::bench(argc > 1 ? argv[1] : (self.parent_path() / "search_test").string(),
                        {argv + std::min(argc, 2), argv + argc});
}
