#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "suite/test.h"
#include "trace/outcome.h"

namespace unflake {

// What the agent is told to do during a run. Without interventions it is the plain run.
struct Plan {
  std::string id;  // empty for the plain run
};

struct Experiment {
  std::shared_ptr<const Test> test;
  Plan plan;
  Duration timeout{std::chrono::seconds(60)};
  bool keep_leftovers = false;  // a CTest fixture's set-up may leave a server running
};

struct ExperimentResult {
  std::chrono::system_clock::time_point started;
  Outcome outcome;
  ProcessResult process;
};

}  // namespace unflake
