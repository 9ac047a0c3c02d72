#pragma once

#include <functional>

#include "run/fork_server.h"
#include "run/launch.h"
#include "run/thread_stacks.h"

namespace unflake {

// Starts the process in its own session, captures what it writes, ends it at its time-out or
// at a request from `control`, and kills what it leaves running. Must be, with the servers, the
// only one in this process that has children. What can wait until the process runs is done by
// `meanwhile`.
ProcessResult run_process(const Launch& launch, Control& control, ForkServers& servers,
                          const CrashWatch& crashes, const std::function<void()>& meanwhile);

}  // namespace unflake
