#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "model/outcome.h"
#include "model/plan.h"
#include "model/test.h"
#include "model/trace.h"

namespace unflake {

struct Experiment {
  std::shared_ptr<const Test> test;
  Plan plan;
  Duration timeout{std::chrono::seconds(60)};
  bool keep_leftovers = false;  // a CTest fixture's set-up may leave a server running
  bool fork_server = false;     // fork it off a process that stands before main, where that works
  Conditions conditions{};
};

struct ExperimentResult {
  std::chrono::system_clock::time_point started;
  Outcome outcome;
  ProcessResult process;
  std::shared_ptr<const Trace> trace;  // when the plan has the agent
};

}  // namespace unflake
