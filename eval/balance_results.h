#pragma once

#include <optional>

#include "balance_answer.h"
#include "surroundings.h"
#include "util/result.h"

namespace unflake::eval {

// Runs with time values set to something.
struct Rerun {
  int runs = 0, failures = 0;
  double median_ms = 0;  // of those that passed
};

// A proposal, and what became of it.
struct CheckedProposal {
  BalanceAnswer answer;
  Rerun as_proposed;
  struct Lowered {
    std::vector<std::string> lines;  // whose values were divided, with all others as proposed
    Rerun rerun;
  };
  std::vector<Lowered> lowered;
};

// What was proposed with all loads in mind, on a machine that is short of something.
struct CheckedAtLoads {
  BalanceAnswer answer;
  Rerun idle, busy, one_core;
  Rerun own_busy, own_one_core;  // with the test's own values
};

struct TimedMeasurement {
  std::string program;
  Rerun base;  // with its own values; only of tests that fail anyway
  std::vector<CheckedProposal> proposals;
  std::optional<CheckedProposal> fatb;
  std::optional<CheckedAtLoads> at_loads;
};

struct SuiteMeasurement {
  SuiteAnswer answer;
  struct Checked {
    std::string test;
    Rerun before, after;
  };
  std::vector<Checked> tests;  // that something was proposed for
};

struct BalanceSettings {
  int checks = 1000;  // runs of a proposal
  int repeat = 2;     // searches of each program
  int suite_runs = 100;
  int load_runs = 200;
  int jobs = 1;
  bool with_fatb = true, with_suites = true, with_loads = true;
  bool real_time = false;  // other work on the machine had to wait

  bool operator==(const BalanceSettings&) const = default;
};

struct BalanceResults {
  BalanceSettings settings;
  Surroundings where;
  std::vector<TimedMeasurement> programs;
  std::vector<SuiteMeasurement> suites;
};

std::string balance_results_json(const BalanceResults& results);
Result<BalanceResults> parse_balance_results(const std::string& text, const std::string& path);

}  // namespace unflake::eval
