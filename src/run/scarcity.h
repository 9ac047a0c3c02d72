#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <set>

#include "model/plan.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

// The conditions of one run, made and kept until it is over. None of it needs privileges: one
// core is an affinity that the test inherits, a share of the time is SIGSTOP and SIGCONT in turn,
// and competitors are processes that do nothing but run.
// A process group that a test makes for itself is not stopped. A stop is not hidden from a test
// that looks for it: a handler of SIGCONT runs, and epoll_wait and sigtimedwait end with EINTR.
class Scarcity {
 public:
  // `slot` chooses the core, so that tests that run side by side have one each.
  Scarcity(const Conditions& conditions, size_t slot) : conditions_(conditions), slot_(slot) {}
  ~Scarcity() { end(); }
  Scarcity(const Scarcity&) = delete;
  Scarcity& operator=(const Scarcity&) = delete;

  // Both return 0 or an errno. What is started between the two is under the conditions.
  int begin();
  int apply_to(pid_t test);  // the leader of its process group

  // No process of the test is still stopped, and no competitor lives. Before the test is
  // reaped: its group's number could be another's afterwards.
  void end();

  std::set<pid_t> pids() const { return helpers_; }  // children of this process

  // Ends this child too when the run ends; -1: errno says why there is none.
  int keep(pid_t helper);

 private:
  int stay_on_one_core();
  void use_all_cores();

  const Conditions conditions_;
  const size_t slot_;
  std::optional<cpu_set_t> all_cores_;  // while this process is on one
  std::set<pid_t> helpers_;
  pid_t paced_ = 0;
};

// How late a thread is on this machine under the conditions, the worst that was seen in about
// the given time: after a sleep, when it is woken, when it is started, while it computes. The
// process must have a single thread.
Result<Duration> probe_lateness(const Conditions& conditions, Duration time);

}  // namespace unflake
