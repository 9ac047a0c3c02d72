#include <errno.h>

#include "agent/actions.h"
#include "agent/clock.h"
#include "agent/failure.h"
#include "agent/memory.h"
#include "agent/probes.h"
#include "agent/recorder.h"
#include "agent/sites.h"
#include "agent/threads.h"

namespace unflake::agent {

using namespace protocol;

namespace {

// In the order in which functions get their arguments.
constexpr int argument_registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_RCX, REG_R8, REG_R9};

bool is_failure(const FailureSign& sign, const ucontext_t* context) {
  const size_t argument = sign.argument & ~any_bit;
  if (argument == 0 || argument > sizeof argument_registers / sizeof argument_registers[0])
    return true;
  const auto word =
      static_cast<uint64_t>(context->uc_mcontext.gregs[argument_registers[argument - 1]]);
  const uint8_t value = sign.offset == argument_itself
                            ? static_cast<uint8_t>(word)
                            : *reinterpret_cast<const uint8_t*>(word + sign.offset);
  if ((sign.argument & any_bit) != 0) return (value & sign.accepted) != 0;
  return value < 8 && (sign.accepted >> value & 1) != 0;
}

void record_visit(uint32_t site) {
  Event* event = next_event();
  if (event == nullptr) return;
  const uint64_t now = now_ns();
  *event = {.enter_ns = now,
            .exit_ns = now,
            .object = 0,
            .value = -1,
            .site = site,
            .stack = none,
            .api = probe_api};
}

void visit_site(uint32_t probe, uint64_t address) {
  Tally* tally = tally_of_probe(probe, address);
  const uint32_t site = tally->site;
  const uint64_t visit = count_visit(*tally, site);
  if ((plan().flags & record_events) != 0) record_visit(site);
  if (tally->plan_site != no_plan_site)
    perform(due_at({tally->plan_site, Position::before, visit}), site);
}

}  // namespace

void on_probe(uint32_t number, ucontext_t* context) {
  const int error = errno;
  if (Guard guard; guard && meet_this_thread()) {
    const Probe& probe = plan_table<Probe>(plan().probes)[number];
    if ((probe.flags & probe_reports_failure) != 0 && is_failure(probe.sign, context))
      capture_report(context);
    if (probe.site != none)
      visit_site(number, static_cast<uint64_t>(context->uc_mcontext.gregs[REG_RIP]));
  }
  errno = error;
}

}  // namespace unflake::agent
