#pragma once

#include <functional>

#include "measurement.h"
#include "truth.h"

namespace unflake::eval {

struct Tools {
  std::string unflake;  // the executable
  std::string zoo;      // the folder of built programs
};

// Measures one program in a temporary folder of its own: reproduce, replay, explain, and each
// strategy alone.
Result<Measurement> measure(const Truth& truth, const Tools& tools, const EvalSettings& settings);

// The strategies that are compared, besides plain reruns.
const std::vector<std::string>& compared_strategies();

}  // namespace unflake::eval
