#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "model/schedule.h"
#include "model/site.h"
#include "model/test.h"
#include "model/trace.h"
#include "util/time.h"

namespace unflake {

// The machine as a run finds it: what can be made scarce without touching the test.
struct Conditions {
  bool one_core = false;  // all threads share one core
  double cpu_share =
      1;                // the part of the time in which the test may run; in the rest it is stopped
  int competitors = 0;  // busy processes on the cores that the test may use

  bool operator==(const Conditions&) const = default;
};

// What happens at a site in a thread.
struct Intervention {
  enum class Action { delay, hold, replace_time, watch, scale_time };
  enum class Position { before, after, start };
  enum class Threads { any, named, in_class };
  enum class Visits { every, only_nth, from_nth, halving };

  SiteName site;
  Position position = Position::before;
  Threads threads = Threads::any;
  ThreadName thread;
  std::string executable;  // base name; empty: any
  Action action = Action::delay;
  // Of the delay; the bound of a hold; the new time value; when times are scaled, what a second
  // becomes.
  Duration duration{};
  Visits visits = Visits::every;
  uint64_t nth = 1;
  std::optional<size_t> anchor;  // visits count only after this intervention (a watch) matched
  std::optional<size_t> until;   // hold: until this intervention (a watch) matched `count` times
  uint64_t count = 1;
};

// As `unflake inject` takes it: "queue.cc:57:pthread_cond_wait:after@main=200ms at visit 3". A hold
// or an anchor needs the rest of the plan to name the other site.
std::string to_string(const Intervention& intervention, const std::vector<Intervention>& plan = {});

// A replaced or scaled time value, not a thread made late.
bool changes_time(const Intervention& intervention);

// What the agent is told to do during a run.
struct Plan {
  std::string id;       // empty for the plain run
  bool agent = false;   // whether the agent is loaded at all; a plain run goes without
  bool calls = false;   // record them
  bool stacks = false;  // of every call
  bool hold_exit = true;
  bool failures = true;       // capture them
  bool system_calls = false;  // sites of calls that system libraries make for themselves
  bool functions = false;     // trace which functions of project code are executed
  std::vector<std::string> groups_off;
  std::vector<std::string> extra_functions;  // names whose entries are sites too
  std::vector<Intervention> interventions;
  std::optional<Schedule> schedule;  // none: threads run as the machine lets them
};

// Zero when it has none.
Duration longest_delay(const Plan& plan);

struct Experiment {
  std::shared_ptr<const Test> test;
  Plan plan;
  Duration timeout{std::chrono::seconds(60)};
  bool keep_leftovers = false;  // a CTest fixture's set-up may leave a server running
  bool fork_server = false;     // fork it off a process that stands before main, where that works
  Conditions conditions{};
};

struct ExperimentResult {
  std::chrono::system_clock::time_point started;
  Outcome outcome;
  ProcessResult process;
  std::shared_ptr<const Trace> trace;  // when the plan has the agent
};

}  // namespace unflake
