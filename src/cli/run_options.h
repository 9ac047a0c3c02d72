#pragma once

#include <optional>
#include <string>

#include "cli/options.h"
#include "search/session.h"

namespace unflake {

struct RunCommand {
  TargetOptions target;
  StoreOptions history;
  ConfigOptions configuration;
  std::optional<int> repeat;
  std::optional<int> retries;
  std::optional<size_t> jobs;
  std::optional<Duration> duration, timeout, grace, slow_after;
  std::optional<uint64_t> seed;
  std::optional<std::string> flaky;
  std::optional<bool> fork_server;
  std::optional<bool> crash_places;
  std::string json_file, junit, colour = "auto";
  bool until_fail = false, fail_fast = false, shuffle = false, no_history = false;
  bool json = false, quiet = false, verbose = false, full = false, core_dumps = false;
  size_t max_output_kib = 1024;
  size_t slowest = 0;
  bool rerun_failed = false;

  bool ci = false, quarantine_new = false;
  std::string changed_since;
  std::optional<int> changed_runs;
  QuarantineOptions quarantine;
};

void add_options(CommandLine& line, RunCommand& run);

SessionPolicy policy_of(const RunCommand& run, const Config& config, bool live);

// How often a new or changed test runs.
int changed_runs_of(const RunCommand& run, const Config& config);

// The command line wins over an override, an override over the suite, the suite over the profile.
std::vector<PlannedTest> plan_tests(const SelectedTests& tests, const RunCommand& run,
                                    const Config& config);

}  // namespace unflake
