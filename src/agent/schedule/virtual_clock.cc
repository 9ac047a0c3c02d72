#include "agent/schedule/virtual_clock.h"

#include "agent/clock.h"
#include "agent/schedule/scheduler.h"
#include "agent/schedule/turns.h"

namespace unflake::agent {
namespace {

constexpr clockid_t most_clocks = 12;
constexpr int64_t look_ns = 1000;
constexpr uint32_t looks_until_yield = 16;

int64_t began[most_clocks];

constinit thread_local struct {
  uint64_t steps;
  uint32_t looks;
} looking __attribute__((tls_model("initial-exec"))) = {};

}  // namespace

bool is_virtual(clockid_t clock) {
  return clock >= 0 && clock < most_clocks && clock != CLOCK_PROCESS_CPUTIME_ID &&
         clock != CLOCK_THREAD_CPUTIME_ID && began[clock] != 0;
}

void begin_virtual_clock() {
  for (clockid_t clock = 0; clock < most_clocks; ++clock)
    began[clock] = static_cast<int64_t>(now_ns(clock));
}

int64_t program_now(clockid_t clock) {
  if (!is_controlled() || !is_virtual(clock)) return static_cast<int64_t>(now_ns(clock));
  return began[clock] + virtual_now();
}

int64_t look_at_clock(clockid_t clock) {
  pass_virtual_time(look_ns);
  if (looking.steps != steps_so_far()) looking = {steps_so_far(), 0};
  if (++looking.looks >= looks_until_yield) {
    yield_turn();
    looking = {steps_so_far(), 0};
  }
  return program_now(clock);
}

}  // namespace unflake::agent
