#include <errno.h>

#include "agent/actions.h"
#include "agent/failure.h"
#include "agent/memory.h"
#include "agent/probes.h"
#include "agent/sites.h"
#include "agent/threads.h"

namespace unflake::agent {

using namespace protocol;

void on_probe(uint32_t probe, ucontext_t* context) {
  const int error = errno;
  if (Guard guard; guard && meet_this_thread()) {
    const uint64_t address = static_cast<uint64_t>(context->uc_mcontext.gregs[REG_RIP]);
    Tally* tally = tally_of_probe(probe, address);
    const uint64_t visit = tally->visits.load();
    const uint32_t site = tally->site;
    if (is_spare(*tally) && site != none)
      report().sites[site].visits.add(1);
    else
      tally->visits.add_alone(1);
    if ((plan_table<Probe>(plan().probes)[probe].flags & probe_reports_failure) != 0)
      capture_report(context);
    if (tally->plan_site != no_plan_site)
      perform(due_at({tally->plan_site, Position::before, visit}), site);
  }
  errno = error;
}

}  // namespace unflake::agent
