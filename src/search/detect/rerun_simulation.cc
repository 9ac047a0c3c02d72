#include "search/detect/rerun_simulation.h"

#include <random>

namespace unflake {
namespace {

struct RerunChoice {
  size_t project = 0, test = 0;
  double worth = -1;
};

RerunChoice most_promising(std::vector<RerunScheduler>& schedulers) {
  RerunChoice best;
  for (size_t i = 0; i < schedulers.size(); ++i)
    if (const auto test = schedulers[i].next())
      if (const double worth = schedulers[i].worth_of(*test); worth > best.worth)
        best = {i, *test, worth};
  return best;
}

RerunScheduler scheduler_of(const SimulatedProject& project, const RerunOptions& options) {
  std::vector<RerunCandidate> tests;
  for (const SimulatedRuns& test : project.tests)
    tests.push_back({test.name, project.lengths_known ? test.seconds : 0});
  return RerunScheduler(tests, project.prior, options);
}

}  // namespace

std::vector<double> simulate_reruns(const std::vector<const SimulatedProject*>& projects,
                                    const RerunOptions& options, double until_seconds,
                                    uint64_t seed) {
  std::vector<RerunScheduler> schedulers;
  for (const SimulatedProject* project : projects)
    schedulers.push_back(scheduler_of(*project, options));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> any(0, 1);
  std::vector<double> found;
  for (double now = 0; now < until_seconds;) {
    const RerunChoice best = most_promising(schedulers);
    if (best.worth < 0) break;
    const SimulatedRuns& test = projects[best.project]->tests[best.test];
    now += test.seconds;
    schedulers[best.project].add(best.test, any(random) < test.rate, test.seconds);
    if (schedulers[best.project].is_unveiled(best.test)) found.push_back(now);
  }
  return found;
}

}  // namespace unflake
