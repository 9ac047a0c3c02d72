#pragma once

#include <set>

#include "support/simulated_test.h"

namespace unflake::simulated {

SiteName line_of(const SiteName& site);

// Tells of a run what the agent would.
class TraceWriter {
 public:
  TraceWriter(const Program& program, const Plan& plan);

  // `no_index`: its group is switched off.
  uint32_t site_number(const SiteName& site);
  uint32_t add_thread(const ThreadName& name, uint32_t parent, const SiteName& created_at,
                      Duration now);
  void end_thread(uint32_t thread, Duration now) { trace_.threads[thread].ended = now; }
  TracedIntervention& intervention(size_t number) { return trace_.interventions[number]; }
  void add_function(const std::string& name) { entered_.insert(name); }
  void add_failure(uint32_t thread, const Step& check, Duration now);

  TracedCall call_at(uint32_t thread, uint32_t site, Duration when);
  void add_calls(std::vector<TracedCall> calls);
  void add_visits(uint32_t thread, const std::map<uint32_t, uint64_t>& visits,
                  const std::vector<TracedCall>& calls);

  std::shared_ptr<const Trace> finish();

 private:
  uint32_t stack_at(const SiteName& site);
  void add_functions();

  const Program& program_;
  const Plan& plan_;
  Trace trace_;
  std::map<std::string, uint32_t> sites_;
  std::map<std::string, uint32_t> stacks_;
  std::set<std::string> entered_;
};

}  // namespace unflake::simulated
