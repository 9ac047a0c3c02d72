#include "search/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

namespace unflake {
namespace {

using Role = PlannedTest::Role;

// A run is queued behind another one only when neither can keep a free slot waiting for long.
constexpr Duration short_run = std::chrono::milliseconds(50);

struct Progress {
  PlannedTest plan;
  Tally tally;
  int rounds = 0;    // runs started, tries after a failure not counted
  int attempts = 0;  // runs started
  int running = 0;
  int tries_left = 0;
  bool queued = false;  // waits for a slot
  bool ended = false;   // its TestEnded has been told
  bool told_leftovers = false;
  std::optional<Duration> last_duration;

  const Test& test() const { return *plan.test; }
  bool settled() const { return tally.runs() > 0 && running == 0 && !queued; }
  bool is_short() const { return last_duration && *last_duration < short_run; }
};

struct Running {
  size_t index = 0;
  int attempt = 0;
  bool begun = true;  // and not waiting behind another run
};

class Session {
 public:
  Session(const std::vector<PlannedTest>& tests, const SessionPolicy& policy, Executor& executor,
          EventStream& events)
      : policy_(policy), executor_(executor), events_(events) {
    for (const PlannedTest& test : tests) {
      Progress progress;
      progress.plan = test;
      tests_.push_back(std::move(progress));
      by_name_[test.test->id.name] = tests_.size() - 1;
    }
    if (policy.shuffle_seed) random_.seed(*policy.shuffle_seed);
    began_ = executor.elapsed();
  }

  Result<SessionEnded> run() {
    enqueue(Role::setup);
    run_phase(Role::test);
    if (!stopping_) {
      enqueue(Role::cleanup);
      run_phase(Role::cleanup);
    }
    const SessionEnded ended = summarise();
    events_.emit(ended);
    if (broken_) return *broken_;
    return ended;
  }

 private:
  void run_phase(Role role) {
    for (;;) {
      start_what_can_start(role);
      tell_begun();
      if (running_.empty()) {
        if (queue_.empty() || stopping_) return;
        give_up_on_the_queue();
        continue;
      }
      handle(executor_.wait(policy_.tick));
      if (broken_) return;
    }
  }

  void start_what_can_start(Role role) {
    while (!stopping_ && executor_.free_slots() > 0) {
      if (queue_.empty() && role == Role::test) next_round();
      const auto next = std::ranges::find_if(queue_, [&](size_t i) { return may_start(i); });
      if (next == queue_.end()) return;
      const size_t index = *next;
      queue_.erase(next);
      start(index, true);
    }
    if (role == Role::test) queue_behind_short_runs();
  }

  // Repeated short runs would spend much of their time between two runs. No result may change
  // what runs next, and nothing that runs may exclude it.
  void queue_behind_short_runs() {
    const bool depends_on_results = policy_.until_fail || policy_.fail_fast;
    while (!stopping_ && !depends_on_results && executor_.queue_room() > 0) {
      if (queue_.empty()) next_round();
      if (queue_.empty() || !may_wait_in_line(tests_[queue_.front()])) return;
      const size_t index = queue_.front();
      queue_.pop_front();
      start(index, false);
    }
  }

  bool may_wait_in_line(const Progress& progress) const {
    const Test& test = progress.test();
    const bool is_free = !test.serial && test.locks.empty() && test.processors <= 1;
    return is_free && progress.is_short() && !serial_is_running_ &&
           std::ranges::all_of(
               running_, [&](const auto& entry) { return tests_[entry.second.index].is_short(); });
  }

  void enqueue(Role role) {
    for (size_t i = 0; i < tests_.size(); ++i)
      if (tests_[i].plan.role == role) push(i);
  }

  void push(size_t index) {
    queue_.push_back(index);
    tests_[index].queued = true;
    tests_[index].tries_left = tests_[index].plan.retries;
  }

  void next_round() {
    std::vector<size_t> round;
    for (size_t i = 0; i < tests_.size(); ++i)
      if (wants_another_round(tests_[i])) round.push_back(i);
    if (policy_.shuffle_seed) shuffle(round);
    for (const size_t index : round) push(index);
  }

  // Written out, because std::shuffle may give another order with another standard library.
  void shuffle(std::vector<size_t>& order) {
    for (size_t left = order.size(); left > 1; --left)
      std::swap(order[left - 1], order[random_() % left]);
  }

  bool wants_another_round(const Progress& progress) const {
    if (progress.plan.role != Role::test || progress.ended || stopping_ || out_of_time())
      return false;
    if (policy_.until_fail && progress.tally.failures > 0) return false;
    return policy_.repeat == 0 || progress.rounds < policy_.repeat;
  }

  bool out_of_time() const {
    return policy_.duration && executor_.elapsed() - began_ >= *policy_.duration;
  }

  bool may_start(size_t index) {
    const Progress& progress = tests_[index];
    const Test& test = progress.test();
    if (serial_is_running_ || (test.serial && !running_.empty())) return false;
    const auto held = [&](const std::string& lock) { return locks_.contains(lock); };
    if (std::ranges::any_of(test.locks, held)) return false;
    if (processors_ + processors_of(test) > executor_.slots()) return false;
    return fixtures_are_settled(test) && dependencies_are_settled(test);
  }

  size_t processors_of(const Test& test) const {
    return std::clamp<size_t>(static_cast<size_t>(std::max(1, test.processors)), 1,
                              executor_.slots());
  }

  bool fixtures_are_settled(const Test& test) const {
    if (test.fixtures.required.empty()) return true;
    return std::ranges::all_of(tests_, [&](const Progress& other) {
      return other.plan.role != Role::setup || !sets_up_for(other.test(), test) ||
             other.settled() || other.ended;
    });
  }

  static bool sets_up_for(const Test& setup, const Test& test) {
    return setup.id != test.id && std::ranges::any_of(setup.fixtures.setup, [&](const auto& name) {
             return std::ranges::find(test.fixtures.required, name) != test.fixtures.required.end();
           });
  }

  bool dependencies_are_settled(const Test& test) const {
    return std::ranges::all_of(test.depends, [&](const std::string& name) {
      const auto found = by_name_.find(name);
      if (found == by_name_.end()) return true;
      const Progress& other = tests_[found->second];
      return other.plan.role == Role::cleanup || other.tally.runs() > 0 || other.ended;
    });
  }

  // Why a set-up that the test needs has not worked; empty when all have.
  std::string failed_fixture(const Test& test) const {
    if (test.fixtures.required.empty()) return "";
    for (const Progress& other : tests_) {
      if (other.plan.role != Role::setup || !sets_up_for(other.test(), test)) continue;
      if (other.tally.passes == 0)
        return fmt::format("its fixture is not there: {} did not pass", to_string(other.test().id));
    }
    return "";
  }

  void start(size_t index, bool begins) {
    Progress& progress = tests_[index];
    progress.queued = false;
    if (progress.plan.role == Role::test) {
      if (std::string reason = failed_fixture(progress.test()); !reason.empty())
        return end_test(index, std::move(reason));
    }
    const bool is_retry = progress.tries_left < progress.plan.retries;
    if (!is_retry) ++progress.rounds;
    ++progress.attempts;
    ++progress.running;
    Experiment experiment;
    experiment.test = progress.plan.test;
    experiment.timeout = progress.plan.timeout;
    experiment.keep_leftovers = progress.plan.role == Role::setup;
    const Ticket ticket = executor_.start(experiment);
    running_[ticket] = {index, progress.attempts, false};
    if (begins) begin(ticket);
  }

  void begin(Ticket ticket) {
    Running& run = running_.at(ticket);
    run.begun = true;
    occupy(tests_[run.index].test());
    begun_.push_back({tests_[run.index].plan.test, run.attempt});
  }

  // Told behind the end of the run whose slot they took.
  void tell_begun() {
    for (const RunStarted& run : begun_) events_.emit(run);
    begun_.clear();
  }

  void occupy(const Test& test) {
    serial_is_running_ = test.serial;
    locks_.insert(test.locks.begin(), test.locks.end());
    processors_ += processors_of(test);
  }

  void vacate(const Test& test) {
    if (test.serial) serial_is_running_ = false;
    for (const std::string& lock : test.locks) locks_.erase(lock);
    processors_ -= processors_of(test);
  }

  void handle(Wakeup wakeup) {
    if (auto* finished = std::get_if<Finished>(&wakeup)) return finish(*finished);
    if (std::holds_alternative<StatusAsked>(wakeup)) return events_.emit(StatusRequested{});
    if (std::holds_alternative<Tick>(wakeup)) return events_.emit(Ticked{});
    if (const auto* broken = std::get_if<Broken>(&wakeup)) {
      broken_ = broken->error;
      stopping_ = true;
      return;
    }
    interrupted_ = stopping_ = true;
    executor_.cancel_all();
  }

  void finish(Finished& finished) {
    const auto found = running_.find(finished.ticket);
    if (found == running_.end()) return;
    const Running run = found->second;
    running_.erase(found);
    Progress& progress = tests_[run.index];
    --progress.running;
    if (run.begun) vacate(progress.test());
    if (running_.contains(finished.next)) begin(finished.next);
    if (finished.result.process.end == ProcessResult::End::cancelled) return;
    progress.last_duration = finished.result.outcome.duration;

    RunEnded ended{progress.plan.test, run.attempt, {}, std::move(finished.result), false};
    count(progress, ended.result.outcome);
    ended.will_retry = ended.result.outcome.failed() && progress.tries_left > 0 && !stopping_;
    if (ended.will_retry) retry(run.index);
    if (policy_.fail_fast && ended.result.outcome.failed() && !ended.will_retry) stopping_ = true;
    // The next run starts before this one is told, so that the telling costs no time.
    if (!stopping_)
      start_what_can_start(progress.plan.role == Role::cleanup ? Role::cleanup : Role::test);
    events_.emit(ended);
    tell_begun();
    tell_leftovers(progress, ended.result.process.leftovers);
    end_if_complete(run.index);
  }

  static void count(Progress& progress, const Outcome& outcome) {
    if (outcome.failed())
      ++progress.tally.failures;
    else if (outcome.kind == OutcomeKind::skipped)
      ++progress.tally.skips;
    else
      ++progress.tally.passes;
  }

  void retry(size_t index) {
    Progress& progress = tests_[index];
    --progress.tries_left;
    progress.queued = true;
    queue_.push_front(index);
  }

  void tell_leftovers(Progress& progress, int leftovers) {
    if (leftovers == 0 || progress.told_leftovers) return;
    progress.told_leftovers = true;
    events_.emit(Note{
        Note::Level::warning,
        fmt::format("{} left {} process{} running; unflake ended {}", to_string(progress.test().id),
                    leftovers, leftovers == 1 ? "" : "es", leftovers == 1 ? "it" : "them"),
        "let the test wait for what it starts"});
  }

  void end_if_complete(size_t index) {
    const Progress& progress = tests_[index];
    if (progress.running > 0 || progress.queued || progress.ended) return;
    if (!wants_another_round(progress)) end_test(index, "");
  }

  void end_test(size_t index, std::string reason) {
    Progress& progress = tests_[index];
    progress.ended = true;
    events_.emit(TestEnded{progress.plan.test, verdict_of(progress.tally), progress.tally,
                           std::move(reason)});
  }

  // Nothing runs and nothing may start: what is left waits for itself.
  void give_up_on_the_queue() {
    for (const size_t index : queue_) {
      tests_[index].queued = false;
      end_test(index, "it and the tests that it depends on wait for each other");
    }
    queue_.clear();
  }

  std::string why_not_run() const {
    if (broken_) return "no more runs could be made";
    if (interrupted_) return "interrupted";
    if (stopping_) return "stopped after the first failure";
    return "the time was over";
  }

  SessionEnded summarise() {
    SessionEnded ended;
    ended.interrupted = interrupted_;
    for (size_t i = 0; i < tests_.size(); ++i) {
      const Progress& progress = tests_[i];
      if (!progress.ended) end_test(i, progress.tally.runs() == 0 ? why_not_run() : "");
      ended.runs.passes += progress.tally.passes;
      ended.runs.failures += progress.tally.failures;
      ended.runs.skips += progress.tally.skips;
      ++counter(ended, verdict_of(progress.tally));
    }
    ended.elapsed = executor_.elapsed() - began_;
    return ended;
  }

  static int& counter(SessionEnded& ended, Verdict verdict) {
    switch (verdict) {
      case Verdict::passed:
        return ended.passed;
      case Verdict::failed:
        return ended.failed;
      case Verdict::flaky:
        return ended.flaky;
      case Verdict::skipped:
        return ended.skipped;
      case Verdict::not_run:
        break;
    }
    return ended.not_run;
  }

  const SessionPolicy policy_;
  Executor& executor_;
  EventStream& events_;
  std::vector<Progress> tests_;
  std::map<std::string, size_t> by_name_;
  std::deque<size_t> queue_;
  std::map<Ticket, Running> running_;
  std::vector<RunStarted> begun_;  // and not told yet
  std::set<std::string> locks_;
  size_t processors_ = 0;
  bool serial_is_running_ = false;
  bool stopping_ = false;
  bool interrupted_ = false;
  std::optional<Error> broken_;
  std::mt19937_64 random_;
  Duration began_{};
};

}  // namespace

Result<SessionEnded> run_session(const std::vector<PlannedTest>& tests, const SessionPolicy& policy,
                                 Executor& executor, EventStream& events) {
  return Session(tests, policy, executor, events).run();
}

}  // namespace unflake
