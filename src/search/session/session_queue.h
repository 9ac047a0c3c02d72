#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/session/session.h"

namespace unflake {

// A run is queued behind another one only when neither can keep a free slot waiting for long.
inline constexpr Duration short_run = std::chrono::milliseconds(50);

// A test of a session, and how far it is.
struct TestProgress {
  PlannedTest plan;
  Tally tally;
  int rounds = 0;      // runs wanted so far, tries after a failure not counted
  int attempts = 0;    // runs started
  int running = 0;     // started and not ended
  int waiting = 0;     // in the queue
  bool ended = false;  // its TestEnded has been told
  bool told_leftovers = false;
  bool cannot_start = false;  // what it takes is not there, and no run of it was made
  std::optional<Duration> last_duration;
  Duration longest{};
  std::string held_back;  // why it was not tried again

  const Test& test() const { return *plan.test; }
  bool settled() const { return ended || (tally.runs() > 0 && running == 0 && waiting == 0); }
  bool is_short() const { return last_duration && *last_duration < short_run; }
};

struct WaitingRun {
  size_t index = 0;
  int tries_left = 0;  // after this one
  bool is_retry = false;
};

struct StartedRun {
  WaitingRun entry;
  int attempt = 0;
  bool begun = false;  // and not behind another run
  Duration since{};    // when it has
  int64_t slow_marks = 0;
};

// The tests of a session, and what they need of each other.
class PlannedTests {
 public:
  void add(const PlannedTest& test) {
    const size_t index = all_.size();
    all_.emplace_back().plan = test;
    by_name_[test.test->id.name] = index;
    if (test.role != PlannedTest::Role::setup) return;
    for (const std::string& fixture : test.test->fixtures.setup) setups_[fixture].push_back(index);
  }

  TestProgress& operator[](size_t index) { return all_[index]; }
  const TestProgress& operator[](size_t index) const { return all_[index]; }
  size_t size() const { return all_.size(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  // Whether all that it needs has been set up, or never will be.
  bool is_ready(size_t index) const {
    return fixtures_are_settled(index) && dependencies_are_settled(all_[index].test());
  }

  // Why a set-up that the test needs has not worked; empty when all have.
  std::string failed_fixture(size_t index) const {
    std::string reason;
    for_each_setup(index, [&](const TestProgress& setup) {
      if (setup.tally.passes == 0)
        reason =
            fmt::format("its fixture is not there: {} did not pass", to_string(setup.test().id));
    });
    return reason;
  }

 private:
  // Calls `act` for every other test that sets up what this one needs.
  template <class Act>
  void for_each_setup(size_t index, Act act) const {
    for (const std::string& fixture : all_[index].test().fixtures.required)
      if (const auto found = setups_.find(fixture); found != setups_.end())
        for (const size_t setup : found->second)
          if (setup != index) act(all_[setup]);
  }

  bool fixtures_are_settled(size_t index) const {
    bool settled = true;
    for_each_setup(index, [&](const TestProgress& setup) { settled = settled && setup.settled(); });
    return settled;
  }

  bool dependencies_are_settled(const Test& test) const {
    return std::ranges::all_of(test.depends, [&](const std::string& name) {
      const auto found = by_name_.find(name);
      if (found == by_name_.end()) return true;
      const TestProgress& other = all_[found->second];
      return other.plan.role == PlannedTest::Role::cleanup || other.tally.runs() > 0 || other.ended;
    });
  }

  std::vector<TestProgress> all_;
  std::map<std::string, size_t> by_name_;
  std::map<std::string, std::vector<size_t>> setups_;  // by fixture
};

// Runs that wait for a slot.
class SessionQueue {
 public:
  explicit SessionQueue(PlannedTests& tests) : tests_(tests) {}

  using Entries = std::deque<WaitingRun>;
  Entries& entries() { return entries_; }
  bool empty() const { return entries_.empty(); }

  void enqueue(PlannedTest::Role role) {
    for (size_t i = 0; i < tests_.size(); ++i)
      if (tests_[i].plan.role == role) push_round(i);
  }

  void push_round(size_t index) {
    TestProgress& progress = tests_[index];
    ++progress.rounds;
    ++progress.waiting;
    entries_.push_back({index, progress.plan.retries, false});
  }

  void drop_first_tries() {
    std::erase_if(entries_, [&](const WaitingRun& entry) {
      const bool dropped =
          !entry.is_retry && tests_[entry.index].plan.role == PlannedTest::Role::test;
      if (dropped) --tests_[entry.index].waiting;
      return dropped;
    });
  }

  void retry(const WaitingRun& entry) {
    ++tests_[entry.index].waiting;
    entries_.push_front({entry.index, entry.tries_left - 1, true});
  }

  WaitingRun take(Entries::iterator entry) {
    const WaitingRun taken = *entry;
    entries_.erase(entry);
    return taken;
  }

 private:
  PlannedTests& tests_;
  Entries entries_;
};

}  // namespace unflake
