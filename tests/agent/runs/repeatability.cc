// Runs programs many times under one schedule each and tells how often that gave the same run.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "agent_runs.h"

namespace unflake {
namespace {

struct Counts {
  std::map<uint64_t, int> digests;
  std::map<std::string, int> reasons;
  int failures = 0;
};

Counts count_runs(const std::string& program, int runs) {
  Counts counts;
  AgentRuns agent({program});
  Plan plan = AgentRuns::watching();
  plan.schedule.emplace();
  plan.schedule->sampler = Sampler::random_walk;
  plan.schedule->seed = 7;
  for (int i = 0; i < runs; ++i) {
    const ExperimentResult result = agent.run(plan);
    if (!result.trace || !result.trace->controlled) continue;
    ++counts.digests[result.trace->controlled->digest];
    ++counts.reasons[result.trace->controlled->not_repeatable];
    counts.failures += result.outcome.kind != OutcomeKind::pass;
  }
  return counts;
}

void tell(const std::string& program, const Counts& counts) {
  int most = 0;
  for (const auto& [digest, count] : counts.digests) most = std::max(most, count);
  std::printf("%-20s the same %5d, runs %zu, failed %d", program.c_str(), most,
              counts.digests.size(), counts.failures);
  for (const auto& [reason, count] : counts.reasons)
    if (!reason.empty()) std::printf("; %d: %s", count, reason.c_str());
  std::printf("\n");
}

}  // namespace
}  // namespace unflake

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: repeatability RUNS PROGRAM...\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    const std::string program = std::filesystem::absolute(argv[i]);
    unflake::tell(std::filesystem::path(program).filename(),
                  unflake::count_runs(program, std::atoi(argv[1])));
    std::fflush(stdout);
  }
}
