#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/plan.h"
#include "run/launch.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

// What a process finds around it that is other than usual: made for one run, gone after it. What
// needs privileges is tried with a user namespace of its own where this user has none.
class OtherWorld {
 public:
  explicit OtherWorld(const Launch& launch);
  ~OtherWorld();
  OtherWorld(const OtherWorld&) = delete;
  OtherWorld& operator=(const OtherWorld&) = delete;

  bool are_usual() const { return are_usual_; }
  // 0 or an errno.
  int make();
  // Of the process, after make().
  void change(Environment& environment) const;
  const Command& command() const { return command_; }
  // In the child that becomes the process, which shares this one's memory: system calls only.
  // 0 or an errno.
  int enter() const;

  // A process that runs copies of it, one after the other, until it is killed; -1 with errno.
  pid_t start_twin(Environment& environment) const;

 private:
  struct Layer {
    std::string folder, upper, work, options;
  };
  bool needs_folder() const;
  bool needs_mounts() const;
  void plan_layers();
  int limit_resources() const;
  int isolate() const;
  int mount_layers() const;

  const Launch& launch_;
  const Conditions& conditions_;
  const bool are_usual_;
  Command command_;
  std::string folder_;  // removed afterwards
  std::string temporary_;
  std::string size_option_;
  std::string id_map_, group_map_;
  std::vector<Layer> layers_;
};

// The time of a condition in ns since 1970; nothing: it is none.
std::optional<int64_t> clock_of(const std::string& text);

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
