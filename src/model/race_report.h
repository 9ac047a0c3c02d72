#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/test.h"
#include "model/trace.h"

namespace unflake {

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
