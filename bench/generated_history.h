#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "store/store.h"

namespace unflake {

// The history of a large project, the same for the same seed: 30,000 tests, builds of twenty
// sessions of 1,500 runs each, two builds of a commit, four months. Some tests are flaky, so that
// 0.04 % of all runs fail and pass when tried again; a few are broken for some commits; one is run
// far more often than the others.
class GeneratedHistory {
 public:
  static constexpr int64_t test_count = 30'000;
  static constexpr int64_t session_runs = 1'500;
  static constexpr int64_t sessions_per_build = 20;

  static constexpr TimePoint usual_start{std::chrono::seconds(1'700'000'000)};

  explicit GeneratedHistory(int64_t runs, uint64_t seed = 1, TimePoint start = usual_start)
      : runs_(runs), seed_(seed), start_(start) {}

  int64_t sessions() const { return (runs_ + session_runs - 1) / session_runs; }
  SessionRecord session(int64_t number) const;
  // Into the same vector again and again, because making strings is most of the work.
  void runs_of(int64_t session, std::vector<RunRecord>& runs) const;

  static TestId test(int64_t number);
  static TestId busy_test() { return test(0); }  // six of a hundred runs
  static TestId flaky_test() { return test(50); }

 private:
  TimePoint start_of(int64_t session) const;

  int64_t runs_;
  uint64_t seed_;
  TimePoint start_;
};

// Every `step`-th session, from `first` on, with record_all. Gives the number of runs.
Result<int64_t> record_generated(Store& store, const GeneratedHistory& history, int64_t first = 0,
                                 int64_t step = 1,
                                 const std::function<void(int64_t)>& progress = {});

}  // namespace unflake
