#pragma once

#include <sys/types.h>

#include <vector>

#include "measurement.h"
#include "truth.h"

namespace unflake::eval {

struct Tools {
  std::string unflake;  // the executable
  std::string zoo;      // the folder of built programs
  std::string repros;   // a folder for what is found
};

// Looks for the failure of one program, in a temporary folder of its own.
Result<Measurement> measure_search(const Truth& truth, const Tools& tools,
                                   const EvalSettings& settings);

// Explains what was found; where they are compared, looks for it with each strategy alone.
Result<void> measure_rest(const Truth& truth, const Tools& tools, const EvalSettings& settings,
                          Measurement& found);

// Replays what was found, beside whatever else runs now.
Replays replay_found(const Truth& truth, const Tools& tools, const EvalSettings& settings);

// Processes that use all the time that they get, as long as it lives.
class BusyProcesses {
 public:
  explicit BusyProcesses(int count);
  BusyProcesses(const BusyProcesses&) = delete;
  BusyProcesses& operator=(const BusyProcesses&) = delete;
  ~BusyProcesses();

 private:
  std::vector<pid_t> children_;
};

// The strategies that are compared, besides plain reruns.
const std::vector<std::string>& compared_strategies();

}  // namespace unflake::eval
