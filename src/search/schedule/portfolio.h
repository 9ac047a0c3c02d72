#pragma once

#include <map>
#include <random>
#include <vector>

#include "search/schedule/interleaving.h"

namespace unflake {

// What a controlled run without exchanges shows of a test: what samplers have to know.
struct ScheduleProfile {
  // An object that several threads touch, one of them to change it.
  struct SharedObject {
    uint64_t object = 0;
    std::vector<uint64_t> accesses;  // by thread
  };
  size_t threads = 0;
  uint64_t length = 0;         // switch points
  bool has_deadlines = false;  // a thread sleeps, or waits with a time-out
  std::vector<SharedObject> shared;
  // Objects that the same places touch, as indices into `shared`: the elements of an array are many
  // objects and one idea.
  std::vector<std::vector<size_t>> groups;
};

// Whether the program calls anything that waits for a time, or asks for it.
bool calls_with_times(const Trace& trace);

ScheduleProfile profile_of(const Trace& trace);

// How often threads can be exchanged, and how late they may be.
struct ScheduleLevel {
  std::vector<SiteName> accesses;
  Duration stall{};
  std::vector<SiteName> hot_accesses{};  // of those
};

// Schedules by several samplers in turn: no sampler finds everything, and each finds something that
// others need a thousand times as many schedules for.
class Portfolio {
 public:
  // With `samplers`, these alone.
  Portfolio(ScheduleProfile profile, ScheduleLevel level, std::vector<Sampler> samplers,
            uint64_t seed);

  Schedule next();
  // The same, by one sampler.
  Schedule next_by(Sampler sampler);
  const std::vector<Sampler>& turns() const { return turns_; }

 private:
  void select_for_surw(Schedule& schedule);
  uint64_t below(uint64_t limit) { return draws_() % limit; }

  ScheduleProfile profile_;
  ScheduleLevel level_;
  std::vector<Sampler> turns_;
  size_t turn_ = 0;
  std::mt19937_64 draws_;
};

}  // namespace unflake
