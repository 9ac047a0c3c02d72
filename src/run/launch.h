#pragma once

#include <string>

#include "model/plan.h"
#include "model/process_result.h"
#include "model/test.h"
#include "symbols/project_code.h"

namespace unflake {

// One process to run, in all that matters to the one who runs it.
struct Launch {
  Command command;
  Duration timeout{};  // zero: none
  Duration grace{};    // between SIGTERM and SIGKILL
  OutputLimits limits;
  bool core_dumps = false;
  bool keep_leftovers = false;
  ProjectCodeRules project_code;  // whose code is the user's own, in stacks
  std::string fork_server;    // the agent's library when it may come from a fork server; else empty
  std::string crash_library;  // what tells where it crashes; empty: nothing does
  Conditions conditions{};
  size_t slot = 0;  // which of those that run side by side this is
};

std::string encode(const Launch& launch);
Launch decode_launch(std::string_view bytes);

std::string encode(const ProcessResult& result);
ProcessResult decode_process_result(std::string_view bytes);

}  // namespace unflake
