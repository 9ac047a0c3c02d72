#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/site.h"
#include "model/trace.h"
#include "protocol/schedule_protocol.h"
#include "trace/code_map.h"
#include "trace/names.h"

// Between the names that plans and traces have and the addresses and numbers of the agent.
namespace unflake {

// What is remembered from run to run of one test.
struct TestMemory {
  SiteBook sites;
  ThreadBook threads;
  std::map<std::string, TracedImage> images;  // by path: project code, and test frameworks
  std::set<std::string> named_images;         // whose source files have their short names
};

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

// Gives everything in a report its name. `plan` is the one that the run was made with.
Trace raise(RawTrace report, const LoweredPlan& plan, CodeMap& code, TestMemory& memory);

// --- The parts of raise() ---

// What the addresses of a run are: code with its names, and stacks of it.
class RaisedCode {
 public:
  // Also tells the memory of the files that named code is in.
  RaisedCode(const RawTrace& raw, CodeMap& code, TestMemory& memory);

  // Addresses in a stack are return addresses, except one that a signal or a probe interrupted.
  const NamedCode* place_of(const RawAddress& address, bool exact = false);
  TracedStack stack_of(const std::vector<RawAddress>& frames, bool first_is_exact = false);
  // The first frame of a stack of the run that is project code.
  std::optional<RawAddress> project_caller(uint32_t stack);
  // As names of places have it, the same in every run.
  std::string name_of(const RawAddress& address);
  const LearnedSite& learn_call(const RawAddress& address, uint16_t api);

 private:
  TracedImage image_of(const RawAddress& address) const;

  const RawTrace& raw_;
  CodeMap& code_;
  TestMemory& memory_;
  std::vector<NamedCode> named_;                                   // as RawTrace::names
  std::vector<std::optional<std::optional<RawAddress>>> callers_;  // per stack, once looked for
};

// The sites of a run, by the numbers that they have in its trace.
class RaisedSites {
 public:
  RaisedSites(const RawTrace& raw, const LoweredPlan& plan, RaisedCode& code, TestMemory& memory);

  // The site of the agent as this stack shows it; `no_index`: it has no name.
  uint32_t number_of(uint32_t site, uint32_t stack);
  // The site of an access that a schedule names; `no_index`: the run did not come to it.
  uint32_t number_of(const SiteName& access) const;
  SiteName as_seen_from_test(SiteName name) const;
  const std::vector<TracedSite>& all() const { return sites_; }

 private:
  RawAddress caller_of(uint32_t site, uint32_t stack);
  std::set<std::pair<RawAddress, uint16_t>> calls();
  void learn_call(const RawAddress& address, uint16_t api);
  uint32_t probe_site(const RawSite& raw);
  uint32_t add(const TracedSite& site);

  const RawTrace& raw_;
  const LoweredPlan& plan_;
  RaisedCode& code_;
  TestMemory& memory_;
  std::vector<TracedSite> sites_;
  std::map<std::string, uint32_t> numbers_;
  std::map<std::pair<RawAddress, uint16_t>, uint32_t> calls_;
};

// How often each thread came to each site of the trace.
class VisitCounts {
 public:
  explicit VisitCounts(RaisedSites& sites) : sites_(sites) {}

  // A call that the agent has at its site `of_agent`, and the trace at `site`.
  void see(uint32_t thread, uint32_t of_agent, uint32_t site) { ++seen_[{thread, of_agent}][site]; }
  // To be asked once, when all calls were seen.
  std::vector<TracedVisits> of(const std::vector<RawTally>& tallies);

 private:
  void divide(const RawTally& tally, const std::map<uint32_t, uint64_t>& calls_of);
  void add(uint32_t thread, uint32_t site, uint64_t count, uint64_t waited_ns);

  RaisedSites& sites_;
  std::map<std::pair<uint32_t, uint32_t>, TracedVisits> visits_;  // by thread and site
  // Per thread and site of the agent: how many calls belong to which site of the trace.
  std::map<std::pair<uint32_t, uint32_t>, std::map<uint32_t, uint64_t>> seen_;
};

// A time of the agent.
Duration to_duration(uint64_t ns);

}  // namespace unflake
