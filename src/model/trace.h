#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/frame.h"
#include "model/site.h"
#include "util/duration.h"

namespace unflake {

// What the agents of one run reported, made safe and readable. Numbers refer to the vectors below;
// `no_index` stands for "not known".
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
};

struct TracedThread {
  uint32_t process = no_index;
  int tid = 0;
  uint32_t parent = no_index;
  ThreadName name;
  uint32_t spawn_stack = no_index;
  Duration started{};
  Duration ended{};  // zero: it lived as long as its process
  uint64_t events_dropped = 0;
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

struct TracedEvent {
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
  bool is_intervention = false;  // the plan's own delay or hold at the site, and no call
};

// What became of one intervention of the plan.
struct TracedIntervention {
  uint64_t visits = 0;  // of its site by a thread that it is for
  uint64_t fired = 0;
  uint64_t let_go = 0;  // holds that ended at their bound
  Duration added{};
};

struct TracedFailure {
  std::string kind;  // "assertion", "assert", "abort", "exception", "thrown before", "signal"
  uint32_t thread = no_index;
  int signal = 0;
  Duration at{};
  std::string file;
  int line = 0;
  std::string message;
  std::string exception_type;
  TracedStack stack;
};

// An index into functions of an image that a one-shot probe saw executed.
struct TracedFunction {
  uint32_t image = no_index;
  uint64_t address = 0;
  std::string name;
  std::string file{};        // as sites name it; empty without debug information
  std::vector<int> lines{};  // with code of it, ascending; the first ones of a very long function
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
  std::vector<TracedEvent> events;                // by thread, each thread's in order of `enter`
  std::vector<TracedIntervention> interventions;  // as in the plan
  std::vector<TracedFailure> failures;
  std::vector<TracedFunction> functions;
  std::vector<Drops> drops;           // empty: nothing was lost
  std::vector<std::string> problems;  // what was unreadable or impossible, in words
  std::vector<CodeNote> code_notes;   // the same in every run of a program; told once
};

// When the last event or thread that was traced ended.
Duration end_of(const Trace& trace);

}  // namespace unflake
