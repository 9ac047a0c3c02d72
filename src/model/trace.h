#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/schedule.h"
#include "model/site.h"
#include "util/time.h"

namespace unflake {

// What became of the times that a place asked for.
enum class TimeUse {
  wait,      // always ran out: the test pays for it in full
  timeout,   // always ended early: it costs nothing as long as nothing is wrong
  mixed,     // both
  not_seen,  // armed here, ends elsewhere, and no call was seen that shows how
};

std::string_view to_string(TimeUse use);

// A smaller difference is how a deadline is met, not another time.
bool are_about_the_same(Duration least, Duration most);

// A time value that code passes to a sleep, a wait with a time-out or a timer; all threads of all
// runs together.
struct TimeValue {
  SiteName site;
  std::string executable;  // base name, as an intervention wants it
  std::string group;       // "sleep", "condition", "poll", "timer" ...
  std::string location;    // for people
  std::string file;        // as fully as stacks show it; empty: not known
  // Calls that system libraries and frameworks make for themselves are shown, not changed.
  bool is_project = true;
  bool is_system_call = false;  // seen only because the calls of system libraries were looked at

  Duration least{}, most{};  // asked for
  uint64_t runs = 0;         // that reached it
  uint64_t visits = 0;
  uint64_t ran_out = 0;
  uint64_t ended_early = 0;
  Duration spent{};              // in all visits of all runs
  std::vector<Duration> early;   // how long the visits that ended early took; a bounded number
  bool could_end_early = false;  // something was waited for: it does not only let time pass

  // A line that leads here, and what it asks for.
  struct Caller {
    std::string location;  // for people
    Duration least{}, most{};
    uint64_t visits = 0;
    Duration spent{};
  };
  // For a place that passes on its callers' times, most time spent first: at least two of them ask
  // for times of their own. Empty: not such a place.
  std::vector<Caller> callers;

  // Else it is computed at run time, or one place is reached with several times.
  bool is_constant() const;
  TimeUse use() const;
  bool is_sleep() const;
  bool is_timer() const;  // it is over when the time has come, not when the call returns
  bool is_never_when_zero() const;
  // A time-out that nothing ended early in any run. It may be there to show that nothing happens
  // for that long: then a shorter one shows less.
  bool is_quiet() const { return could_end_early && use() == TimeUse::wait; }
  Duration spent_per_run() const { return runs ? spent / static_cast<int64_t>(runs) : Duration{}; }
};

// What the agents of one run reported, made safe and readable. Numbers refer to the vectors below;
// `no_index` means "not known".
inline constexpr uint32_t no_index = 0xffffffff;

struct TracedImage {
  std::string path;
  std::string build_id;  // bytes
  bool is_project = false;
};

struct TracedProcess {
  int pid = 0;
  uint32_t parent = no_index;
  uint32_t executable = no_index;
  std::string name;
  Duration started{};                 // since the first thing that was reported, as all times here
  std::vector<std::string> degraded;  // what the agent could not do there
  std::string agent = "native";       // which kind of agent reports on it
};

struct TracedThread {
  uint32_t process = no_index;
  int tid = 0;
  uint32_t parent = no_index;
  ThreadName name;
  uint32_t spawn_stack = no_index;
  Duration started{};
  Duration ended{};  // zero: it lived as long as its process
  uint64_t calls_dropped = 0;
  std::string title{};  // that the program gave it, if it did
};

struct TracedFrame {
  uint32_t image = no_index;
  uint64_t address = 0;               // as in the ELF file
  std::vector<Frame> source;          // innermost first; empty: unknown
  uint32_t first_project = no_index;  // in `source`: where project code begins
};

struct TracedStack {
  std::vector<TracedFrame> frames;  // innermost first
};

struct TracedSite {
  SiteName name;
  std::string group;     // "lock", "sleep" ...; "probe" for lines and functions
  std::string location;  // for people: file with its folder, line, function
  uint32_t image = no_index;
  uint64_t address = 0;
  uint16_t api = 0;
};

// What one thread did at one site.
struct TracedVisits {
  uint32_t thread = no_index;
  uint32_t site = no_index;
  uint64_t visits = 0;
  Duration waited{};
};

struct TracedCall {
  Duration enter{};
  Duration exit{};
  uint64_t object = 0;
  int64_t value = -1;  // the time asked for in ns, or bytes
  uint32_t thread = no_index;
  uint32_t site = no_index;
  uint32_t stack = no_index;
  int32_t result = 0;
  bool timed_out = false;
  bool delayed = false;
  bool replaced = false;
  bool unfinished = false;
  bool is_intervention = false;  // the plan's own delay or hold at the site, not a call
};

// What became of one intervention of the plan.
struct TracedIntervention {
  uint64_t visits = 0;  // of its site by a thread that it is for
  uint64_t fired = 0;
  uint64_t let_go = 0;  // holds that ended at their bound
  Duration added{};
  uint64_t impossible = 0;  // holds that ended because nobody was left to come first
};

struct TracedFailure {
  std::string
      kind;  // "assertion", "assert", "abort", "exception", "thrown before", "signal", "printed"
  uint32_t thread = no_index;
  int signal = 0;
  Duration at{};
  std::string file;
  int line = 0;
  std::string message;
  std::string exception_type;
  TracedStack stack;
};

// Whose code a traced function is.
enum class FunctionKind {
  project,  // the user's own
  call,     // of another library, and the user's own code calls it
  library,  // of another library, and compiled into the user's program: templates, archives
};

// A function of an image that a one-shot probe saw executed.
struct TracedFunction {
  uint32_t image = no_index;
  uint64_t address = 0;
  std::string name;
  std::string file{};        // as sites name it; empty without debug information
  std::vector<int> lines{};  // with code of it, ascending; the first ones of a very long function
  FunctionKind kind = FunctionKind::project;
};

struct Drops {
  std::string what;
  uint64_t count = 0;
};

// What the user should know about the program's code before believing a trace of it: which of it
// cannot be seen, and settings that do nothing.
struct CodeNote {
  std::string text;
  std::string next;
  bool operator==(const CodeNote&) const = default;
};

struct Trace {
  std::vector<TracedImage> images;
  std::vector<TracedProcess> processes;
  std::vector<TracedThread> threads;
  std::vector<TracedSite> sites;
  std::vector<TracedVisits> visits;
  std::vector<TracedStack> stacks;
  std::vector<TracedCall> calls;                  // by thread, each thread's in order of `enter`
  std::vector<TracedIntervention> interventions;  // as in the plan
  std::vector<TracedFailure> failures;
  std::vector<TracedFunction> functions;
  std::vector<Drops> drops;                 // empty: nothing was lost
  uint64_t calls_left_out = 0;              // on purpose: they only repeat what others show
  std::vector<std::string> problems;        // what was unreadable or impossible, in words
  std::vector<CodeNote> code_notes;         // the same in every run of a program; told once
  std::optional<ControlledRun> controlled;  // when the plan had a schedule
  // Of a run that was not controlled; its threads are numbers in `threads`. Empty: none.
  std::vector<DeadlockedThread> deadlock;
};

// A thread of a controlled run; nullptr: the trace has none of that number.
const TracedThread* scheduled_thread(const Trace& trace, ThreadNumber number);

// Of a controlled run or another one; empty: it has none.
const std::vector<DeadlockedThread>& deadlock_of(const Trace& trace);
// One of them.
const TracedThread* deadlocked_thread(const Trace& trace, ThreadNumber number);

// "deadlock: main waits at a.cc:7:pthread_join for pool.cc:31#0, which waits at ...".
std::string deadlock_text(const Trace& trace);

// When the last call or thread that was traced ended.
Duration end_of(const Trace& trace);

}  // namespace unflake
