#pragma once

#include <stdint.h>

// Between a supervisor and the small library that it loads into plain runs: a process that is about
// to die of a signal says so, stands still until its stack was read, and dies as it would have.
namespace unflake::protocol {

// "SUPERVISOR:NOTICES:ANSWERS": a process id and two paths. The library opens them only when the
// process dies, so that the test has no descriptor of ours. It takes the variable, and itself in
// LD_PRELOAD, out of the environment before anybody can see them.
inline constexpr char crash_variable[] = "UNFLAKE_CRASH";
inline constexpr char crash_file_name[] = "libunflake-crash.so";

struct CrashNotice {
  int32_t pid;
  int32_t tid;
  int32_t was_sent;  // by a call of raise or kill, not by an instruction
};

// Then nobody seems to look, and the process dies without having been seen.
inline constexpr int crash_milliseconds_to_answer = 10'000;

}  // namespace unflake::protocol
