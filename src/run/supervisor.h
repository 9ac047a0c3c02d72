#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "run/fork_server.h"
#include "run/launch.h"
#include "run/thread_stacks.h"
#include "util/files.h"
#include "util/result.h"

namespace unflake {

// A forked child that runs one process at a time and owns every descendant of it: orphans are
// re-parented to the supervisor, so what a test leaves running is found however it was forked, and
// belongs to that test alone. However unflake dies, the supervisor ends the test
// and exits too.
struct Supervisor {
  pid_t pid = 0;
  UniqueFd socket;  // readable when a result waits

  // false, none: the supervisor is gone. Launches wait for their turn; each gets one result.
  bool launch(const std::string& launch);  // an encoded Launch
  bool cancel();  // drops what waits and asks what runs to end; a second time, kills it
  std::optional<ProcessResult> receive();
};

Result<Supervisor> start_supervisor();

// Starts the process in its own session, captures what it writes, ends it at its time-out or
// at a request from `control`, and kills what it leaves running. Must be, with the servers, the
// only one in this process that has children. What can wait until the process runs is done by
// `meanwhile`.
ProcessResult run_process(const Launch& launch, Control& control, ForkServers& servers,
                          const CrashWatch& crashes, const std::function<void()>& meanwhile);

}  // namespace unflake
