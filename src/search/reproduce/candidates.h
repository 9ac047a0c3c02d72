#pragma once

#include <string>
#include <vector>

#include "search/reproduce/hunt.h"
#include "search/reproduce/profile.h"

namespace unflake {

// Where in a passing run the failure would be: what comes after it cannot be its cause.
struct FailurePoint {
  uint32_t thread = no_index;  // of the trace; no_index: not known
  Duration at{};               // when the trace ends, if not known
  std::string how;             // it was found, in words
};

// By the wanted line where it was watched, else by stacks: the last call from that line, then from
// that function, then the one whose stack begins most like that of a recorded failure (the longest
// common part from the outside, over the length of the longer stack).
FailurePoint find_failure_point(const Trace& trace, const Wanted& wanted,
                                const TracedFailure* recorded = nullptr);

// With what the hunt is after, and the stack of that failure if a profiling run showed it.
FailurePoint find_failure_point(const Trace& trace, const Hunt& hunt);

// A program with a framework of its own tells nobody of a failed check but its output. Its trace
// learns where the run came to that: by the line of the check, else where the initial thread ended.
void add_printed_failure(ExperimentResult& result);

// The line to watch for that; none where the framework's failures are captured.
std::optional<SiteName> line_of_printed_failure(const Failure& failure, Framework framework);

// One delay that may flip two calls of a passing run.
struct Candidate {
  // What being late there would flip, most promising last.
  enum class Flips {
    nothing,        // everything else waits for this thread anyway
    own_time,       // nothing but the thread's own clock
    third_parties,  // other threads, none of which is the failing one
    others,         // the failing thread is the late one: others get ahead of it
    failure_point,  // the failing thread gets to the failure without it
  };

  // Whom it is for. Of a class (all that one place has started), whoever comes there first.
  enum class Kind { first_of_class, thread, all_of_class };

  Intervention delay;
  Kind kind = Kind::thread;
  uint32_t thread = no_index;  // of the trace
  std::string thread_class;
  Duration at{};  // when the passing run came there
  Flips flips = Flips::nothing;
  bool starts_burst = false;  // first thing after the thread began, made another, or was woken
  bool single_visit = false;
  bool is_long = false;  // outlasts a time-out that the passing run never needed
  std::string why;
};

// From a passing run: every place of every thread, each with a delay that is long enough to let
// everything pass that could.
std::vector<Candidate> find_candidates(const Trace& trace, const FailurePoint& failure,
                                       const DelayLimits& limits);

// The same for classes of threads, where a class has several.
std::vector<Candidate> class_candidates(const std::vector<Candidate>& candidates);

// Leaves only some of those that differ in nothing but which thread of a class it is, and the most
// promising; with the failing thread's own. How many are gone.
size_t leave_representatives(std::vector<Candidate>& candidates, uint32_t failing_thread);
inline constexpr size_t most_representatives = 8;

// The same for whoever of a thread's class comes there: the first of them, and all of them.
std::vector<Intervention> for_its_class(const Intervention& delay);

void arrange(std::vector<Candidate>& candidates, Order order, uint64_t seed);

// Which thread of a pool comes somewhere, or comes there first, is chance on free cores. Every
// thread begins once.
bool is_left_to_chance(const Intervention& delay, const Trace& trace);

}  // namespace unflake
