#pragma once

#include <array>
#include <csignal>

#include "run/launch.h"

namespace unflake {

// A supervisor ignores these, and a process that it starts does not.
inline constexpr std::array signals_ignored_by_supervisor{SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                                                          SIGPIPE, SIGUSR1, SIGUSR2};

// Starts the process in a session of its own, captures what it writes, ends it at its time-out or
// when `control` becomes readable (a word from the other side, or its death), and kills what it
// leaves behind. Needs to be the only one in this process that has children.
ProcessResult run_process(const Launch& launch, int control);

}  // namespace unflake
