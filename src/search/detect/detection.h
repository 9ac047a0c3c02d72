#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/detect_report.h"
#include "search/detect/characteristic.h"
#include "search/detect/factor_search.h"
#include "search/detect/rerun_scheduler.h"
#include "search/reproduce/strategy.h"

namespace unflake {

// A test that is looked at, and what is known of it before.
struct DetectInput {
  std::shared_ptr<const Test> test;
  Duration timeout{std::chrono::minutes(10)};
  double seconds = 0;                           // of a run; 0: not known
  double suspicion = 1;                         // as in RerunCandidate
  std::set<std::string> known_signatures = {};  // of failures that it has shown before
};

struct DetectOptions {
  Duration budget{std::chrono::minutes(10)};
  RerunOptions rerun;
  RerunPrior prior = RerunPrior::usual();
  bool perturb = true;
  // Of the budget, for schedules and delays; the rest is for plain runs.
  double perturb_share = 0.8;
  Duration longest_search{std::chrono::seconds(30)};  // for one test
  HuntOptions hunt;
  // Whose execution makes a test more or less suspect, and tests of which it is known what came of
  // that.
  CharacteristicSet functions;
  std::vector<KnownTest> known;

  // Sets up what the test needs, before its runs. None: nothing is needed.
  std::function<Result<void>(size_t test)> choose = {};
  // Turns what a search has found into a repro, and keeps it. None: it is told without one.
  struct Kept {
    Repro repro;
    std::string file;
  };
  std::function<Result<Kept>(size_t test, Hunt& hunt, const Found& found)> keep = {};

  // What is tried on a test that was seen flaky and that no schedule or delay explains. None:
  // nothing. What was found becomes a repro in the same way.
  FactorLevels factors;
  std::function<Result<Kept>(const FactorFinding& finding)> keep_factor = {};
  // Looks, for at most this long, for tests that depend on what ran before them: a repro of each.
  // None: nobody does.
  struct Ordered {
    std::vector<Kept> found;
    std::vector<std::string> notes;
    int test_runs = 0;
    bool stopped = false;  // by the user
  };
  std::function<Result<Ordered>(Duration most)> look_for_orders = {};
  double orders_share = 0.15;  // of the budget
};

// Which tests of a suite are flaky, for a part of what reruns take: one plain run of each; one run
// under the agent, which tells threads and waits; then a few orders of the whole suite; then
// schedules and delays for those that have threads or waits; then plain runs where they most likely
// show something, until the budget is over or nothing is worth a run. What was seen flaky is asked
// for its cause: lateness first, then factors of its surroundings. Plain runs are told as runs, all
// others as trials.
class Detection {
 public:
  Detection(Executor& executor, EventStream& events, std::vector<DetectInput> tests,
            const DetectOptions& options);

  // An error: no more runs could be made. What was found until then is in report().
  Result<void> operator()();
  // At any time.
  DetectReport report() const;

 private:
  struct Known {
    DetectedTest result;
    Duration in_plain_runs{};
    bool was_looked_into = false, can_be_looked_into = true;
    bool was_explained = false;  // or tried to be
  };

  bool is_over() const { return stopped_ || error_ || budget_.is_spent(); }
  void say(const std::string& text);
  bool choose(size_t test);
  bool run_plain(size_t test);
  void take_plain(size_t test, const ExperimentResult& result);
  void tell_if_found(size_t test, bool was_unveiled);
  void run_each_once();
  void look_into_each();
  void look_into(size_t test);
  void take_look(size_t test, const Trace& trace);
  void perturb_suspects();
  std::vector<size_t> look_for_lateness(const std::vector<size_t>& tests, Duration patience,
                                        Duration ends);
  // False: it gave up for want of a sign, and could go on.
  bool perturb(size_t test, Duration time, Duration patience);
  Duration patience_for(size_t test, Duration patience) const;
  void tell_unsearched(const std::vector<size_t>& tests);
  void tell_lack_of_time(size_t test, const std::string& what);
  void take_found(size_t test, Hunt& hunt);
  void rerun();
  void look_for_orders();
  void explain_flaky(size_t test);
  void look_for_factors_of(size_t test);
  void take_kept(size_t test, DetectOptions::Kept kept);
  std::vector<size_t> suspects() const;
  void put_promising_first(std::vector<size_t>& tests) const;
  Duration mean_of(size_t test) const;  // of its plain runs
  DetectedTest judged(size_t test) const;

  Executor& executor_;
  EventStream& events_;
  const std::vector<DetectInput> tests_;
  const DetectOptions options_;
  const Budget budget_;
  const ExposurePrior exposure_;
  RerunScheduler scheduler_;
  std::vector<Known> known_;
  std::vector<std::string> notes_;
  Duration in_plain_runs_{}, in_trials_{};
  int plain_runs_ = 0, trials_ = 0;
  bool stopped_ = false, is_done_ = false;
  std::optional<Error> error_;
};

}  // namespace unflake
