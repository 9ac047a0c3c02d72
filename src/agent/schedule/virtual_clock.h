#pragma once

#include <stdint.h>
#include <time.h>
#include <ucontext.h>

namespace unflake::agent {

// The time that a controlled run sees: it begins with the real one and passes by steps and jumps.
// Clocks of processors and of processes out of control stay what they are.
void begin_virtual_clock();

// The time of a clock as the program is to see it.
int64_t program_now(clockid_t clock);

// When something happened, for traces: in the program's time, so that what it waited for in a
// controlled run is as long as it was for the program.
inline uint64_t traced_now() {
  return static_cast<uint64_t>(program_now(CLOCK_MONOTONIC));
}

// A look at a clock by the program. Who looks again and again waits for time to pass.
bool is_virtual(clockid_t clock);
int64_t look_at_clock(clockid_t clock);

// When code of the program reads the processor's time stamp counter: from here on it is a clock
// like others. Reading it is a fault, which becomes a look. Where the system cannot do that, and in
// libraries that are loaded later, it stays what it is.
void take_time_stamps();
bool time_stamps_are_taken();
// Programs that this thread starts inherit the fault, but not what becomes of it: meanwhile there
// is none.
void leave_time_stamps(bool leave);
// Whether the fault was that; then the context is after the instruction.
bool read_time_stamp(ucontext_t* context);

}  // namespace unflake::agent

// Timers of a controlled run: they are kept here, in virtual time, and the system's own is set to
// go off at once when that time has come.
namespace unflake::agent {

enum class TimerKind : uint8_t { descriptor, interval, posix };

struct TimerSetting {
  int64_t span;      // until it goes off; 0: it is off
  int64_t interval;  // afterwards; 0: only once
};

// Returns what was left of the setting before.
TimerSetting set_virtual_timer(TimerKind kind, uint64_t id, const TimerSetting& setting);
void forget_timer(TimerKind kind, uint64_t id);

// One that counts the processor's time, and so is not to be kept here.
void leave_to_system(uint64_t posix_timer);
bool is_left_to_system(uint64_t posix_timer);

int64_t timer_of_descriptor(int descriptor);  // of this process; forever: none is set
int64_t next_timer();                         // of any process; forever: there is none
// Sets those off whose time has come: at once, or after some real time. Each process does it for
// its own and is asked to.
void fire_timers(int64_t delay_ns = 1000);
void fire_own_timers(int64_t delay_ns = 1000);
void forget_timers_of(uint32_t process);

}  // namespace unflake::agent
