#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/site.h"
#include "protocol/schedule_protocol.h"

namespace unflake {

class CodeMap;
struct TestMemory;

struct LoweredImage : TracedImage {
  std::vector<protocol::SkipRange> skips;  // ordered by start
};

struct LoweredSchedule {
  protocol::SchedulePlan plan{};
  std::vector<protocol::PlannedDecision> decisions;  // ordered by point
  std::vector<uint64_t> selected;
  std::vector<uint64_t> remaining;
  std::vector<protocol::PlanAccess> accesses;
  std::vector<SiteName> access_names;
};

// A plan in the agent's terms: numbers and addresses instead of names.
struct LoweredPlan {
  uint32_t flags = 0;   // of protocol::PlanFlags
  uint32_t groups = 0;  // a bit per group
  uint64_t hold_exit_ns = 0;
  std::vector<LoweredImage> images;
  std::vector<protocol::PlanSite> sites;  // ordered by image, offset and api
  std::vector<protocol::Rule> rules;      // a site's own are adjacent
  std::vector<protocol::Probe> probes;
  std::vector<std::string> system_prefixes;
  std::optional<LoweredSchedule> schedule;

  std::vector<uint32_t> rule_of;      // per intervention of the plan: its rule
  std::vector<SiteName> probe_names;  // per probe: its site; without a name where it has none
  std::map<std::string, size_t> unprobeable;  // functions to trace that have no probe, by reason
};

// Where a thread is over, other than a process's first: written "thread end()".
SiteName end_of_thread();

// Turns the names of a plan into addresses. Calls must have been seen by an earlier run of the
// test; lines and functions are looked up in its images. An error names what is like it.
Result<LoweredPlan> lower(const Plan& plan, CodeMap& code, const TestMemory& memory);

}  // namespace unflake
