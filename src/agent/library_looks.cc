#include "agent/library_looks.h"

#include "agent/clock.h"
#include "agent/images.h"

namespace unflake::agent {
namespace {

// How much a thread can compute before a look cannot be about the wait any more. Not by the wall
// clock: on a busy machine the thread may not run for long.
constexpr uint64_t longest_ns = 1'000'000;

// Deadlines of the program may be finer than what the wait was given.
constexpr int64_t margin_ns = 1000;

// The library's own clocks are compiled, also where the library is linked into the program.
bool is_library_clock(const void* caller) {
  if (is_cxx_runtime(caller)) return true;
  const auto address = reinterpret_cast<uint64_t>(caller);
  const LoadedImage* image = image_at(address);
  return image != nullptr && image == executable_image() &&
         owner_of(address, image) != CodeOwner::project;
}

}  // namespace

void foresee_looks(clockid_t clock, int64_t deadline, bool timed_out, uint8_t count) {
  const bool is_past = static_cast<int64_t>(now_ns(clock)) >= deadline;
  if (is_past == timed_out) return;
  ForeseenLooks& looks = this_thread.looks;
  looks.told_ns = timed_out ? deadline + margin_ns : deadline - margin_ns;
  looks.until_cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + longest_ns;
  looks.clock = clock;
  looks.count = count;
}

void tell_foreseen(const void* caller, clockid_t clock, timespec* time) {
  ForeseenLooks& looks = this_thread.looks;
  const bool is_meant = clock == looks.clock && is_library_clock(caller) &&
                        now_ns(CLOCK_THREAD_CPUTIME_ID) <= looks.until_cpu_ns;
  looks.count = is_meant ? looks.count - 1 : 0;
  if (is_meant) *time = to_timespec(looks.told_ns);
}

}  // namespace unflake::agent
