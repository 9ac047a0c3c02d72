#pragma once

#include <stdint.h>

// Between a supervisor and the small libraries that it loads into runs beside the agent, or without
// it.
namespace unflake::protocol {

// The one for crashes: a process that is about to die of a signal says so, pauses until its stack
// has been read, and dies as it would have.

// "SUPERVISOR:ANSWERS": a process id and a path. The library opens it only when the process dies,
// so that the test has no descriptor of ours. It removes the variable, and itself in LD_PRELOAD,
// from the environment before anybody can see them.
inline constexpr char crash_variable[] = "UNFLAKE_CRASH";
inline constexpr char crash_file_name[] = "libunflake-crash.so";

// This signal announces a crash, queued for the supervisor with a CrashNotice in its value: one
// system call, since other threads of the test may end it any moment.
inline constexpr int crash_notice_signal = 64;

struct CrashNotice {
  int32_t pid;
  int32_t tid;
  int32_t signal;
  int32_t was_sent;  // by a call of raise or kill, not by an instruction
};

constexpr uint64_t crash_value(const CrashNotice& notice) {
  return uint64_t{static_cast<uint32_t>(notice.tid)} << 8 |
         static_cast<uint64_t>(notice.signal & 0x7f) << 1 | (notice.was_sent != 0 ? 1 : 0);
}
constexpr CrashNotice crash_notice(int32_t pid, uint64_t value) {
  return {pid, static_cast<int32_t>(value >> 8), static_cast<int32_t>(value >> 1 & 0x7f),
          static_cast<int32_t>(value & 1)};
}

// Then nobody seems to look, and the process dies without having been seen.
inline constexpr int crash_milliseconds_to_answer = 10'000;

// The one for another world: which clock, which random numbers and how many cores a run has.
inline constexpr const char* world_file_name = "libunflake-world.so";
inline constexpr const char* world_clock_variable = "UNFLAKE_WORLD_CLOCK_NS";  // added to the clock
inline constexpr const char* world_seed_variable = "UNFLAKE_WORLD_SEED";       // 0: none
inline constexpr const char* world_cores_variable = "UNFLAKE_WORLD_CORES";     // 0: all

}  // namespace unflake::protocol
