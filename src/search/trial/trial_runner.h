#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/events.h"
#include "model/outcome.h"
#include "model/plan.h"
#include "run/executor.h"
#include "stats/rates.h"

namespace unflake {

// One experiment that somebody wants to make, and why.
struct Trial {
  Plan plan;
  Conditions conditions;
  std::string why;
  std::optional<TestOrder> tests = std::nullopt;  // that run before the one that it is about
  bool is_one_of_many = false;                    // so that it is worth a fork server
  Duration takes{};  // at least so long, as another run has told; zero: no run has
};

struct Observation {
  ExperimentResult result;
  bool hit = false;    // it showed what the search is after
  bool fired = false;  // an intervention has happened; true when the trial has none
  Duration limit{};    // that the run had
};

// Whether it makes a thread late, or tells it another time.
bool acts(const Intervention& intervention);

bool has_started(const ExperimentResult& result);
// Whether one of the plan's delays happened; true when it has none.
bool has_fired(const Plan& plan, const ExperimentResult& result);

// Whether it ran out of time while most of that was delays.
bool ran_into_delays(const ExperimentResult& result);

// What all delays of a thread come to that have begun when the test failed, of the thread that was
// delayed most. The run must have recorded its calls.
Duration lateness_in(const ExperimentResult& result);

// Whether a stack that was captured when it failed has this file and line.
bool failed_at(const ExperimentResult& result, const Failure& wanted);
// Whether a text has them, as in "queue.cc:57", "queue.cc(57)" or "queue.cc on line 57".
bool names_line(std::string_view text, const Failure& wanted);

// The site and the thread.
std::string site_text(const Intervention& intervention);
// Different for different trials.
std::string text_of(const Trial& trial);
std::string headline_of(const Outcome& outcome);

// The time that there is for all trials together, by the executor's clock.
class Budget {
 public:
  Budget(const Executor& executor, Duration whole)
      : executor_(executor), whole_(whole), began_(executor.elapsed()) {}

  Duration whole() const { return whole_; }
  Duration elapsed() const { return executor_.elapsed() - began_; }
  Duration left() const { return whole_ - elapsed(); }
  bool is_spent() const { return left() <= Duration::zero(); }

 private:
  const Executor& executor_;
  const Duration whole_;
  const Duration began_;
};

// Tells the event stream what is tried and why, and every trial when it has ended.
class TrialTeller {
 public:
  TrialTeller(std::shared_ptr<const Test> test, EventStream& events)
      : test_(std::move(test)), events_(events) {}

  // Names the strategy whose trials follow, and what it does, for people.
  void begin(std::string strategy, std::string about = "");
  // What is tried next, and why. Told when its first run begins: what there is no time for is not.
  void announce(std::string text) { announced_ = std::move(text); }
  void tell_announced();
  // What has come of it.
  void say(const std::string& text);
  // With the test, the strategy and the number of its purpose.
  void tell(TrialEnded ended);

  const std::string& strategy() const { return strategy_; }

 private:
  const std::shared_ptr<const Test> test_;
  EventStream& events_;
  std::string strategy_;
  std::string about_, announced_;  // that nobody was told yet
  std::map<TrialEnded::Purpose, int> told_;
};

// What a run may take: as long as it needs, and no longer than its share of the budget.
struct TrialLimit {
  Duration timeout{};
  Duration share = Duration::max();
  bool keep_leftovers = false;  // a fixture's set-up may leave a server running
};

// Makes the runs of every command that runs a test on purpose, keeps to the budget and to time
// limits, counts, and tells the event stream. It knows nothing of what the runs are for.
class TrialRunner {
 public:
  using Purpose = TrialEnded::Purpose;
  // What the search is after. Until it says so, any failure is.
  struct Aim {
    std::function<bool(const Trial&, const ExperimentResult&)> is_hit;
    bool wants_pass = false;
  };

  TrialRunner(Executor& executor, std::shared_ptr<const Test> test, EventStream& events,
              Duration budget = Duration::max() / 2);

  void aim_at(Aim aim) { aim_ = std::move(aim); }

  // One run. Nothing when somebody asked to stop, no run can be made any more, or the budget cut it
  // short: that has shown nothing, a hang least of all.
  std::optional<Observation> run(const Trial& trial, Purpose purpose, const TrialLimit& limit);

  // Runs of different trials, side by side, while there is a next one and time for it.
  using Next = std::function<std::optional<Trial>()>;
  using Take = std::function<void(const Trial&, const Observation&)>;
  void run_each(Purpose purpose, Duration timeout, int at_once, const Next& next, const Take& take);

  // Up to so many runs, some of them side by side, until `enough` says so or the budget is spent.
  struct Series {
    int most = 1;
    int at_once = 1;
  };
  using Enough = std::function<bool(const Observation&)>;
  // How many were started; those that were stopped count too.
  int run_series(const Trial& trial, Purpose purpose, Duration timeout, const Series& series,
                 const Enough& enough);

  // The last run, when the budget cut it short; and such a run that is believed after all.
  const std::optional<ExperimentResult>& cut_short() const { return cut_short_; }
  void believe(const Trial& trial, Purpose purpose, const ExperimentResult& result);

  const Test& test() const { return *test_; }
  TrialTeller& teller() { return teller_; }
  const Budget& budget() const { return budget_; }
  Duration left() const { return budget_.left(); }
  Duration elapsed() const { return budget_.elapsed(); }

  // No run can be made any more: somebody asked to stop, or something broke.
  bool has_ended() const { return stopped_ || error_; }
  bool stopped() const { return stopped_; }
  const std::optional<Error>& error() const { return error_; }
  void fail(Error error) { error_ = std::move(error); }

  int runs() const { return runs_; }
  // Those that were told, and how many of them were hits.
  Count counted(Purpose purpose) const;

 private:
  Ticket start(const Trial& trial, const TrialLimit& limit);
  std::optional<Finished> next_finished();
  Observation observed(const Trial& trial, ExperimentResult result, Duration limit) const;
  void tell(const Trial& trial, Purpose purpose, const Observation& seen);

  Executor& executor_;
  const std::shared_ptr<const Test> test_;
  TrialTeller teller_;
  const Budget budget_;
  Aim aim_;
  std::map<Purpose, Count> counts_;
  std::optional<ExperimentResult> cut_short_;
  int runs_ = 0;
  int running_ = 0;
  bool stopped_ = false;
  std::optional<Error> error_;
};

// Fresh runs without interventions: what runs under a plan are compared with. They are made when
// somebody needs them, and shared by all who do.
class BaseRate {
 public:
  BaseRate(TrialRunner& runner, Plan plan)
      : runner_(runner), plain_{std::move(plan), {}, "without delays"} {}

  // One more. False: it could not be made, or had no time to end.
  bool add(const TrialLimit& limit);
  void add(Outcome outcome) { outcomes_.push_back(std::move(outcome)); }

  const Trial& plain() const { return plain_; }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  int runs() const { return static_cast<int>(outcomes_.size()); }
  Count count(const std::function<bool(const Outcome&)>& is_hit) const;

 private:
  TrialRunner& runner_;
  const Trial plain_;
  std::vector<Outcome> outcomes_;
};

// Whether something comes in at least 3 of 5 fresh runs, or another share, and more often than
// without the plan. Looks at the counts after 5, 10, 20 and 40 runs share the error that is
// allowed: looking more often does not make a lucky streak more likely to pass.
class Confirmation {
 public:
  enum class Answer { holds, does_not, no_time, ended };
  // The n-th candidate of a search shares the error with all others; so do the hits that were
  // looked at before: 1/2 + 1/6 + 1/12 ... is no more than 1.
  Confirmation(int candidates, int hits_before, double least_share = 0.6);

  struct Runs {
    // A fresh run with the plan, and whether it came again. Nothing: there is no time for one.
    std::function<std::optional<bool>()> with_plan;
    // Without the plan, when there are so many, or as many as there is time for.
    std::function<Count(int runs)> without_plan;
    // Stopped, or broken: what was counted says nothing.
    std::function<bool()> has_ended;
  };
  Answer operator()(const Runs& runs);

  const Count& with_plan() const { return with_plan_; }
  const Count& without_plan() const { return without_plan_; }

  static constexpr int group_of_runs = 5;

 private:
  bool is_lost(int runs) const;
  std::optional<Answer> look(int number, int runs) const;
  void make_runs(const Runs& make, int runs);

  const double allowed_;
  const double least_share_;
  Count with_plan_, without_plan_;
};

}  // namespace unflake
