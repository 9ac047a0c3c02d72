#pragma once

#include <chrono>
#include <concepts>
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

// The machine as a run finds it: what can be made scarce, or other than usual, without touching the
// test. What is empty, 0 or false is as the machine has it.
struct Conditions {
  bool one_core = false;  // all threads share one core
  double cpu_share =
      1;                // the part of the time in which the test may run; in the rest it is stopped
  int competitors = 0;  // busy processes on the cores that the test may use
  std::string addresses{};    // "fixed": the same in every run; "low": where old systems put them
  int environment_bytes = 0;  // a variable of this size more
  std::string locale{};       // for all categories
  std::string time_zone{};    // as TZ has it
  std::string clock{};        // when the run begins: "2028-02-29T12:00:00Z"
  std::string umask{};        // octal
  int open_files = 0;         // at most
  int free_disk_mib = 0;      // at most
  bool other_temporary = false;  // an empty temporary folder with a name of its own
  bool other_folder = false;     // it is started in an empty folder
  int twins = 0;                 // copies of it that run at the same time, again and again
  int random_seed = 0;           // of what the system calls random
  int hash_seed = 0;             // of the hash tables of Python and Perl
  bool no_network = false;       // but loopback
  int memory_fill = 0;           // the byte that fills memory which was allocated or freed
  bool private_files = false;    // what it writes is gone when it ends
  int cores_told = 0;            // how many it is told that the machine has

  bool operator==(const Conditions&) const = default;
};

// A field as files and people have it. In words, `{n}` is its number, `{s}` the end of a plural.
struct ConditionField {
  const char* name;
  double least, most;       // that a file may hold
  double shown;             // what people are shown of 1
  const char* in_short;     // "one core"
  const char* as_a_clause;  // after "it fails when"
  bool is_rare = true;      // texts and files that do not have it mean the usual
};

// The one list of all fields: whoever writes, reads, sends or tells conditions goes through it.
template <class SomeConditions, class Visit>
void for_each_field(SomeConditions&& conditions, Visit visit) {
  visit(ConditionField{"one_core", 0, 1, 1, "one core", "all threads share one core", false},
        conditions.one_core);
  visit(ConditionField{"cpu_share", 0.001, 1, 100, "{n:.0f} % of the time",
                       "it may run for {n:.0f} % of the time", false},
        conditions.cpu_share);
  visit(ConditionField{"competitors", 0, 1000, 1, "{n:.0f} busy neighbour{s}",
                       "{n:.0f} busy processes compete with it", false},
        conditions.competitors);
  visit(ConditionField{"addresses", 0, 10, 1, "{n} addresses", "its memory has {n} addresses"},
        conditions.addresses);
  visit(ConditionField{"environment_bytes", 0, 100'000, 1, "an environment larger by {n:.0f} bytes",
                       "its environment is larger by {n:.0f} bytes"},
        conditions.environment_bytes);
  visit(ConditionField{"locale", 0, 100, 1, "locale {n}", "the locale is {n}"}, conditions.locale);
  visit(ConditionField{"time_zone", 0, 100, 1, "time zone {n}", "the time zone is {n}"},
        conditions.time_zone);
  visit(ConditionField{"clock", 0, 30, 1, "clock at {n}", "the clock shows {n}"}, conditions.clock);
  visit(ConditionField{"umask", 0, 4, 1, "umask {n}", "the umask is {n}"}, conditions.umask);
  visit(ConditionField{"open_files", 0, 1'000'000, 1, "{n:.0f} open files",
                       "it may have {n:.0f} files open"},
        conditions.open_files);
  visit(ConditionField{"free_disk_mib", 0, 1'000'000, 1, "{n:.0f} MiB of free disk",
                       "{n:.0f} MiB of the disk are free"},
        conditions.free_disk_mib);
  visit(ConditionField{"other_temporary", 0, 1, 1, "another temporary folder",
                       "the temporary folder is another one"},
        conditions.other_temporary);
  visit(ConditionField{"other_folder", 0, 1, 1, "another working folder",
                       "it is started in another folder"},
        conditions.other_folder);
  visit(ConditionField{"twins", 0, 64, 1, "{n:.0f} cop{y} of it at once",
                       "{n:.0f} cop{y} of it run{v} at the same time"},
        conditions.twins);
  visit(ConditionField{"random_seed", 0, 1'000'000, 1, "random numbers of seed {n:.0f}",
                       "its random numbers come from seed {n:.0f}"},
        conditions.random_seed);
  visit(ConditionField{"hash_seed", 0, 1'000'000, 1, "hash seed {n:.0f}",
                       "hash tables have seed {n:.0f}"},
        conditions.hash_seed);
  visit(ConditionField{"no_network", 0, 1, 1, "no network", "there is no network but loopback"},
        conditions.no_network);
  visit(ConditionField{"memory_fill", 0, 255, 1, "memory filled by byte {n:.0f}",
                       "new and freed memory is filled with byte {n:.0f}"},
        conditions.memory_fill);
  visit(ConditionField{"private_files", 0, 1, 1, "private files",
                       "what others wrote before it is not there"},
        conditions.private_files);
  visit(ConditionField{"cores_told", 0, 1024, 1, "a machine of {n:.0f} core{s}",
                       "the machine says that it has {n:.0f} core{s}"},
        conditions.cores_told);
}

template <class Json>
Json json_of(const Conditions& conditions) {
  Json json = Json::object();
  for_each_field(conditions, [&](const ConditionField& field, auto value) {
    using Value = decltype(value);
    if (!field.is_rare || value != Value{}) json[field.name] = value;
  });
  return json;
}

// Whether the clock, what is random or the number of cores is another: that takes a library in the
// process.
inline bool needs_library(const Conditions& conditions) {
  return !conditions.clock.empty() || conditions.random_seed != 0 || conditions.cores_told != 0;
}

// What is scarce, in words of the one kind or the other.
std::vector<std::string> scarcity_words(const Conditions& conditions,
                                        const char* ConditionField::*kind);

// Different for different conditions.
std::string to_string(const Conditions& conditions);

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
  bool agent = false;   // whether the agent is loaded at all; not for a plain run
  bool calls = false;   // record them
  bool stacks = false;  // for every call
  bool hold_exit = true;
  bool failures = true;       // capture them
  bool system_calls = false;  // sites of calls that system libraries make for themselves
  bool functions = false;     // trace which functions of project code are executed
  bool callees = false;       // and which functions of other libraries it calls
  // And which of these (globs over names) that other libraries have put into the program.
  std::vector<std::string> library_functions{};
  std::vector<std::string> groups_off;
  std::vector<std::string> extra_functions;  // names whose entries are sites too
  std::vector<Intervention> interventions;
  std::optional<Schedule> schedule;  // none: threads run as the machine lets them
};

// What is done to a test in a run, in words: "queue.cc:57:read@main=200ms; one core". Empty for a
// plain run.
std::string to_string(const Plan& plan, const Conditions& conditions);

// Tells what a test executes, and nothing else.
bool is_function_trace(const Plan& plan);

// Zero when it has none.
Duration longest_delay(const Plan& plan);

// How a suite is to arrange tests that run one after the other. Other tests do not change the order
// of those that remain, except of Boost.Test, which draws a new one for each selection.
struct Arrangement {
  enum class Kind { listed, reversed, by_name, shuffled };
  Kind kind = Kind::listed;
  uint32_t seed = 0;  // of one that is shuffled, from 1

  bool operator==(const Arrangement&) const = default;
};

// "listed", "shuffled with seed 7"
std::string to_string(const Arrangement& arrangement);

// The tests that one process runs one after the other. Nearly all lists have one. Of several, the
// last is the one that the run is about: the others come before it.
struct TestOrder {
  std::vector<std::shared_ptr<const Test>> all;
  std::optional<Command> command;  // that runs several; of a single one, its own
  bool is_open = false;            // only the run shows in which order the framework took them
  bool is_expected = false;        // although open, it most likely is that of `all`
  bool has_processes = false;      // the command starts one for each, in this order

  TestOrder() = default;
  template <class Pointer>
  requires std::convertible_to<Pointer, std::shared_ptr<const Test>> TestOrder(Pointer only)
      : all{std::move(only)} {}
  TestOrder(std::vector<std::shared_ptr<const Test>> tests, Command together)
      : all(std::move(tests)), command(std::move(together)) {}

  const Test& last() const { return *all.back(); }
  bool is_single() const { return all.size() == 1; }
  const Command& how() const { return command ? *command : last().command; }
};

struct Experiment {
  TestOrder tests;
  Plan plan;
  Duration timeout{std::chrono::seconds(60)};
  bool keep_leftovers = false;  // a CTest fixture's set-up may leave a server running
  bool fork_server = false;     // fork it off a process stopped before main, where that works
  Conditions conditions{};
};

struct ExperimentResult {
  std::chrono::system_clock::time_point started;
  Outcome outcome;  // of the last test
  ProcessResult process;
  std::shared_ptr<const Trace> trace;  // when the plan has the agent
  // Of each test in their order, when there are several. What was not reached is skipped.
  std::vector<Outcome> outcomes{};
  std::vector<size_t>
      sequence{};  // of several: which of them were seen, in the order of their runs
};

}  // namespace unflake
