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

// The thread may be late: the plan's deadline can have passed since the wait was over.
int64_t to_tell(const ForeseenLooks& looks, int64_t now) {
  const bool is_past = now >= looks.given_ns;
  const bool should_be = looks.timed_out || (is_past && now >= looks.changed_ns);
  if (is_past == should_be) return now;
  return should_be ? looks.given_ns + margin_ns : looks.given_ns - margin_ns;
}

}  // namespace

void foresee_looks(clockid_t clock, int64_t given, int64_t changed, bool timed_out, uint8_t count) {
  this_thread.looks = {given, changed, now_ns(CLOCK_THREAD_CPUTIME_ID) + longest_ns,
                       clock, count,   timed_out};
}

void tell_foreseen(const void* caller, clockid_t clock, timespec* time) {
  ForeseenLooks& looks = this_thread.looks;
  const bool is_meant = clock == looks.clock && is_library_clock(caller) &&
                        now_ns(CLOCK_THREAD_CPUTIME_ID) <= looks.until_cpu_ns;
  looks.count = is_meant ? looks.count - 1 : 0;
  if (is_meant) *time = to_timespec(to_tell(looks, to_ns(*time)));
}

}  // namespace unflake::agent
