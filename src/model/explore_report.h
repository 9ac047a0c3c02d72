#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "model/schedule.h"
#include "model/test.h"
#include "model/trace.h"

namespace unflake {

// What was found out about a test by running it under schedules.
struct ExploreReport {
  enum class Answer {
    fails,           // and the schedule under which it does is known
    passes_in_all,   // every schedule there is was run, or is equal to one that was
    nothing_new,     // no failure, and hardly any order, or pair of places, is left to be seen
    budget_over,     // no failure until then
    not_controlled,  // its threads could not be scheduled: `why`
    stopped,         // by the user
  };

  struct Tally {
    Sampler sampler = Sampler::stay;
    uint64_t schedules = 0;
    uint64_t failures = 0;
  };

  // Every schedule with at most so many preemptions.
  struct Bounded {
    std::optional<int> preemptions;  // none: all there are
    uint64_t schedules = 0;
    bool is_complete = false;
    std::string why_incomplete;
  };

  struct Found {
    OutcomeKind outcome = OutcomeKind::fail;
    Failure failure;
    std::string signature;
    Sampler sampler = Sampler::stay;  // that found it
    uint64_t after_schedules = 0;
    Schedule schedule;  // the reduced one
    uint64_t digest = 0;
    size_t switches = 0;  // that are left of `switches_at_first`
    size_t switches_at_first = 0;
    uint64_t came_back = 0, repeats = 0;  // under the same schedule
    std::vector<OrderConstraint> orders;
    std::vector<OrderConstraint> enough;  // that give it whoever goes first otherwise
    std::vector<std::string> sentences;   // what has to happen
    std::vector<std::string> deadlock;    // who waits for whom; empty: it is none
    Duration stall{};                     // the least lateness that it takes: its slack
    bool needs_accesses = false;          // switch points at memory accesses
    // On free cores, when no thread has to be interrupted: it should fail there, too.
    uint64_t free_runs = 0, free_failures = 0;
    std::shared_ptr<const Trace> trace;  // of the run under the reduced schedule
  };

  TestId test;
  Answer answer = Answer::budget_over;
  bool may_have_new_orders = false;  // it ended because no pair came in a new order
  std::string why;
  std::string not_repeatable;  // the call because of which runs may not repeat
  uint64_t seed = 1;
  Duration budget{}, elapsed{};
  uint64_t schedules = 0;  // runs of all kinds

  size_t threads = 0;
  uint64_t switch_points = 0;  // of a run without exchanges
  size_t shared_objects = 0;
  bool looked_for_accesses = false;
  uint64_t guarded_accesses = 0;  // instructions that touch such memory with one lock always held
  std::vector<std::string> hot_accesses;  // at whose first visits alone threads were exchanged
  size_t access_sites = 0;   // instructions that touch memory which several threads use
  Duration longest_stall{};  // that was tried

  std::vector<Tally> tries;  // of the search
  std::vector<Tally> rates;  // of fresh schedules, after the failure was found
  size_t pairs = 0, pairs_in_both_orders = 0;
  size_t orders = 0, orders_seen_once = 0;
  uint64_t sampled = 0;          // schedules that the two above are counted in
  uint64_t since_new_order = 0;  // of these, the last ones without anything new
  std::vector<Bounded> bounded;
  std::map<std::string, int> other_failures;  // headline -> runs, that were not wanted
  std::shared_ptr<const Trace> undisturbed;   // of a run without exchanges
  std::optional<Found> found;
};

// Two accesses of different threads to the same memory, at least one of which writes, not both of
// them atomic, and with nothing that makes one come before the other.
struct Race {
  // An aligned load or store of an atomic variable is a plain instruction.
  enum class Manner { plain, not_told, atomic };

  struct Access {
    std::string thread;
    bool writes = false;
    uint8_t size = 0;  // bytes
    Manner manner = Manner::plain;
    SiteName site;         // the instruction
    std::string location;  // of the first frame in project code; for people
    TracedStack stack;
  };

  std::string variable;  // "seats", "ring.head_"; empty: it has no name
  std::string type;      // empty: not known
  std::string region;    // where it is, when it has no name
  Access first, second;  // the write first, if only one is
  uint64_t runs = 0;     // that showed it
  std::vector<TracedImage> images;
};

// What runs under several schedules have shown of a test's data races.
struct RaceReport {
  enum class Answer {
    found,
    none,
    not_controlled,  // its threads could not be scheduled: `why`
    budget_over,     // before any run could be looked at
    stopped,         // by the user
  };

  TestId test;
  Answer answer = Answer::none;
  std::string why;
  std::string not_repeatable;  // the call because of which runs may not repeat
  uint64_t seed = 1;
  Duration budget{}, elapsed{};
  uint64_t runs = 0;      // that were looked at
  uint64_t orders = 0;    // different ones among them
  uint64_t cut_runs = 0;  // of which only the first switch points were kept
  size_t threads = 0;
  size_t access_sites = 0;        // instructions that touch memory which several threads use
  uint64_t guarded_accesses = 0;  // with one lock always held: those were not watched
  std::vector<std::string> hot_accesses;  // of which only the first visits were watched
  std::vector<Race> races;
};

}  // namespace unflake
