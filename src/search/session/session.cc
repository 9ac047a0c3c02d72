#include "search/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace unflake {
namespace {

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

using Role = PlannedTest::Role;

// How far to look for a test that may start beside those that run.
constexpr ptrdiff_t look_ahead = 1000;

// What a session tells of its runs.
class SessionTelling {
 public:
  explicit SessionTelling(EventStream& events) : events_(events) {}

  void has_begun(RunStarted run) { begun_.push_back(std::move(run)); }

  // Told after the end of the run whose slot they took.
  void tell_begun() {
    for (const RunStarted& run : begun_) events_.emit(run);
    begun_.clear();
  }

  void tell(TestProgress& progress, const StartedRun& run, ExperimentResult result,
            bool will_retry) {
    const int leftovers = result.process.leftovers;
    const std::string no_fork_server = result.process.no_fork_server;
    events_.emit(RunEnded{progress.plan.test, run.attempt, progress.plan.plan, std::move(result),
                          will_retry});
    if (!no_fork_server.empty()) tell_spawned(progress.test(), no_fork_server);
    if (leftovers == 0 || progress.told_leftovers) return;
    progress.told_leftovers = true;
    events_.emit(Note{
        Note::Level::warning,
        fmt::format("{} left {} process{} running; unflake ended {}", to_string(progress.test().id),
                    leftovers, leftovers == 1 ? "" : "es", leftovers == 1 ? "it" : "them"),
        "let the test wait for what it starts"});
  }

 private:
  // Every supervisor finds it out for itself.
  void tell_spawned(const Test& test, const std::string& why) {
    std::string text =
        fmt::format("{} has no fork server: {}; each run is a new process", test.id.target, why);
    if (!told_spawned_.insert(text).second) return;
    events_.emit(Note{Note::Level::info, std::move(text), ""});
  }

  EventStream& events_;
  std::vector<RunStarted> begun_;  // and not told yet
  std::set<std::string> told_spawned_;
};

// Runs that go on for longer than most do.
class SlowRuns {
 public:
  using Runs = std::map<Ticket, StartedRun>;
  SlowRuns(std::optional<Duration> after, const Executor& executor)
      : after_(after), executor_(executor) {}

  std::optional<Duration> longest_wait(const Runs& running, std::optional<Duration> tick) const {
    std::optional<Duration> longest = tick;
    if (!after_) return longest;
    const Duration now = executor_.elapsed();
    for (const auto& [ticket, run] : running) {
      if (!run.begun) continue;
      const Duration left = run.since + *after_ * (run.slow_marks + 1) - now;
      longest = std::max(std::min(longest.value_or(left), left), Duration::zero());
    }
    return longest;
  }

  void tell(Runs& running, const PlannedTests& tests, EventStream& events) const {
    if (!after_) return;
    const Duration now = executor_.elapsed();
    for (auto& [ticket, run] : running) {
      const int64_t marks = run.begun ? (now - run.since) / *after_ : 0;
      if (marks <= run.slow_marks) continue;
      run.slow_marks = marks;
      events.emit(RunSlow{tests[run.entry.index].plan.test, run.attempt, *after_ * marks});
    }
  }

 private:
  const std::optional<Duration> after_;
  const Executor& executor_;
};

int& counter(SessionEnded& ended, Verdict verdict) {
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

std::vector<SlowTest> slowest_tests(const PlannedTests& tests, size_t most) {
  std::vector<SlowTest> slowest;
  if (most == 0) return slowest;
  for (const TestProgress& progress : tests)
    if (progress.tally.runs() > 0) slowest.push_back({progress.plan.test, progress.longest});
  std::ranges::stable_sort(slowest, std::greater(), &SlowTest::duration);
  slowest.resize(std::min(slowest.size(), most));
  return slowest;
}

// Written out, because std::shuffle may give another order with another standard library.
void shuffle(std::vector<size_t>& order, std::mt19937_64& random) {
  for (size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random() % left]);
}

class Session {
 public:
  Session(const std::vector<PlannedTest>& tests, const SessionPolicy& policy, Executor& executor,
          EventStream& events)
      : policy_(policy),
        executor_(executor),
        events_(events),
        reservations_(executor.slots()),
        retry_rule_(policy.retry),
        telling_(events),
        slow_(policy.slow_after, executor) {
    for (const PlannedTest& test : tests) tests_.add(test);
    if (policy.shuffle_seed) random_.seed(*policy.shuffle_seed);
    began_ = executor.elapsed();
  }

  Result<SessionEnded> run() {
    queue_.enqueue(Role::setup);
    run_phase(Role::test);
    if (!stopping_) {
      queue_.enqueue(Role::cleanup);
      run_phase(Role::cleanup);
    }
    const SessionEnded ended = summarise();
    if (executor_.slots() > 1 && ended.failed + ended.flaky > 0)
      events_.emit(Note{Note::Level::info,
                        fmt::format("up to {} tests ran at the same time; those that share a file "
                                    "or a port may have disturbed each other",
                                    executor_.slots()),
                        "run the failed ones again with --jobs 1"});
    events_.emit(ended);
    if (broken_) return *broken_;
    return ended;
  }

 private:
  void run_phase(Role role) {
    phase_ = role;
    for (;;) {
      start_what_can_start();
      telling_.tell_begun();
      if (!running_.empty())
        handle(wait());
      else if (queue_.empty() || stopping_)
        return;
      else if (!next_round())
        give_up_on_the_queue();
      if (broken_) return;
    }
  }

  // What is slow is told before its end is, which may have come meanwhile.
  Wakeup wait() {
    Wakeup wakeup = executor_.wait(slow_.longest_wait(running_, policy_.tick));
    slow_.tell(running_, tests_, events_);
    return wakeup;
  }

  void start_what_can_start() {
    while (!stopping_ && executor_.free_slots() > 0) {
      if (queue_.empty()) next_round();
      const auto next = next_to_start();
      if (next == queue_.entries().end()) return;
      start(queue_.take(next), true);
    }
    queue_behind_short_runs();
  }

  SessionQueue::Entries::iterator next_to_start() {
    if (out_of_time()) queue_.drop_first_tries();
    auto& waiting = queue_.entries();
    const bool all = running_.empty() || std::ssize(waiting) <= look_ahead;
    const auto end = all ? waiting.end() : waiting.begin() + look_ahead;
    const auto next = std::find_if(waiting.begin(), end,
                                   [&](const WaitingRun& entry) { return may_start(entry.index); });
    return next == end ? waiting.end() : next;
  }

  // Repeated short runs would spend much of their time between two runs. No result may change
  // what runs next, and nothing that runs may exclude it.
  void queue_behind_short_runs() {
    if (phase_ != Role::test || policy_.until_fail || policy_.fail_fast) return;
    while (!stopping_ && !out_of_time() && executor_.queue_room() > 0) {
      if (queue_.empty() && !next_round()) return;
      const auto next = queue_.entries().begin();
      if (!may_wait_in_line(tests_[next->index])) return;
      start(queue_.take(next), false);
    }
  }

  bool may_wait_in_line(const TestProgress& progress) const {
    const Test& test = progress.test();
    const bool is_free = !test.serial && test.locks.empty() && test.processors <= 1 &&
                         progress.plan.retries == 0 && progress.is_short();
    return is_free && std::ranges::all_of(running_, [&](const auto& entry) {
             const TestProgress& other = tests_[entry.second.entry.index];
             return other.is_short() && !other.test().serial;
           });
  }

  bool next_round() {
    if (phase_ != Role::test) return false;
    std::vector<size_t> round;
    for (size_t i = 0; i < tests_.size(); ++i)
      if (wants_another_round(tests_[i])) round.push_back(i);
    if (policy_.shuffle_seed) shuffle(round, random_);
    for (const size_t index : round) queue_.push_round(index);
    return !round.empty();
  }

  bool wants_another_round(const TestProgress& progress) const {
    if (progress.plan.role != Role::test || progress.ended || stopping_ || out_of_time())
      return false;
    if (progress.cannot_start || (progress.rounds > 0 && !progress.test().obstacle.empty()))
      return false;
    if (policy_.until_fail && progress.tally.failures > 0) return false;
    const int wanted = progress.plan.repeat.value_or(policy_.repeat);
    return wanted == 0 ? progress.waiting == 0 : progress.rounds < wanted;
  }

  bool out_of_time() const {
    return policy_.duration && executor_.elapsed() - began_ >= *policy_.duration;
  }

  bool may_start(size_t index) const {
    return reservations_.allow(tests_[index].test()) && tests_.is_ready(index);
  }

  void start(const WaitingRun& entry, bool begins) {
    TestProgress& progress = tests_[entry.index];
    --progress.waiting;
    if (progress.plan.role != Role::cleanup)
      if (std::string reason = tests_.failed_fixture(entry.index); !reason.empty())
        return end_test(entry.index, std::move(reason));
    ++progress.running;
    Experiment experiment;
    experiment.tests = progress.plan.test;
    experiment.timeout = progress.plan.timeout;
    experiment.keep_leftovers = progress.plan.role == Role::setup;
    experiment.fork_server = progress.plan.fork_server;
    experiment.plan = progress.plan.plan;
    const Ticket ticket = executor_.start(experiment);
    running_[ticket] = {entry, ++progress.attempts};
    if (begins) begin(ticket);
  }

  void begin(Ticket ticket) {
    StartedRun& run = running_.at(ticket);
    const TestProgress& progress = tests_[run.entry.index];
    run.begun = true;
    run.since = executor_.elapsed();
    reservations_.occupy(progress.test());
    telling_.has_begun({progress.plan.test, run.attempt});
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
    const StartedRun run = found->second;
    running_.erase(found);
    TestProgress& progress = tests_[run.entry.index];
    --progress.running;
    if (run.begun) reservations_.vacate(progress.test());
    if (!stopping_ && running_.contains(finished.next)) begin(finished.next);

    const bool counts = finished.result.process.end != ProcessResult::End::cancelled;
    const bool failed = counts && finished.result.outcome.failed();
    if (counts) note_result(progress, finished.result);
    const bool will_retry = failed && run.entry.tries_left > 0 && !stopping_ &&
                            may_be_retried(progress, finished.result);
    if (will_retry) queue_.retry(run.entry);
    if (policy_.fail_fast && failed && !will_retry) stopping_ = true;
    // The next run starts before this one is told, so that the telling costs no time.
    start_what_can_start();
    if (run.begun) telling_.tell(progress, run, std::move(finished.result), will_retry);
    telling_.tell_begun();
    for (const Note& note : retry_rule_.news()) events_.emit(note);
    if (counts) end_if_complete(run.entry.index);
  }

  void note_result(TestProgress& progress, const ExperimentResult& result) {
    const Outcome& outcome = result.outcome;
    const bool is_first = progress.tally.runs() == 0;
    if (is_first) retry_rule_.count_first_try(outcome.failed());
    progress.cannot_start = is_first && lacks_something(result.process);
    progress.tally.add(outcome);
    progress.last_duration = outcome.duration;
    progress.longest = std::max(progress.longest, outcome.duration);
  }

  bool may_be_retried(TestProgress& progress, const ExperimentResult& result) {
    const bool in_vain = lacks_something(result.process);
    progress.held_back = in_vain ? "not tried again: what it takes to start it is not there"
                                 : retry_rule_.why_not(result.outcome);
    return progress.held_back.empty();
  }

  void end_if_complete(size_t index) {
    const TestProgress& progress = tests_[index];
    if (progress.running > 0 || progress.waiting > 0 || progress.ended) return;
    if (!wants_another_round(progress)) end_test(index, progress.held_back);
  }

  void end_test(size_t index, std::string reason) {
    TestProgress& progress = tests_[index];
    progress.ended = true;
    events_.emit(TestEnded{progress.plan.test, verdict_of(progress.tally), progress.tally,
                           std::move(reason)});
  }

  // Nothing runs and nothing may start: what is left waits for itself.
  void give_up_on_the_queue() {
    for (const WaitingRun& entry : queue_.entries()) {
      --tests_[entry.index].waiting;
      if (!tests_[entry.index].ended)
        end_test(entry.index, "it and the tests that it depends on wait for each other");
    }
    queue_.entries().clear();
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
      const TestProgress& progress = tests_[i];
      const bool cut_short = progress.tally.runs() == 0 || interrupted_;
      if (!progress.ended) end_test(i, cut_short ? why_not_run() : "");
      ended.runs += progress.tally;
      ++counter(ended, verdict_of(progress.tally));
    }
    ended.elapsed = executor_.elapsed() - began_;
    ended.mass_failure = retry_rule_.mass_failure();
    ended.slowest = slowest_tests(tests_, policy_.slowest);
    return ended;
  }

  const SessionPolicy policy_;
  Executor& executor_;
  EventStream& events_;
  Reservations reservations_;
  RetryRule retry_rule_;
  PlannedTests tests_;
  Role phase_ = Role::test;
  SessionQueue queue_{tests_};
  std::map<Ticket, StartedRun> running_;
  SessionTelling telling_;
  SlowRuns slow_;
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

namespace {

using Tests = std::vector<std::shared_ptr<const Test>>;

bool overlaps(const std::vector<std::string>& names, const std::set<std::string>& wanted) {
  return std::ranges::any_of(names, [&](const auto& name) { return wanted.contains(name); });
}

// What the selected tests require, and what the tests that set those up require in turn.
std::set<std::string> required_fixtures(const Tests& selected, const Tests& all) {
  std::set<std::string> wanted;
  for (const auto& test : selected)
    wanted.insert(test->fixtures.required.begin(), test->fixtures.required.end());
  for (size_t before = wanted.size() + 1; before != wanted.size();) {
    before = wanted.size();
    for (const auto& test : all)
      if (overlaps(test->fixtures.setup, wanted) || overlaps(test->fixtures.cleanup, wanted))
        wanted.insert(test->fixtures.required.begin(), test->fixtures.required.end());
  }
  return wanted;
}

}  // namespace

std::vector<PlannedTest> with_fixtures(const Tests& selected, const Tests& all) {
  const std::set<std::string> wanted = required_fixtures(selected, all);
  std::set<TestId> planned;
  std::vector<PlannedTest> plan;
  const auto add = [&](const std::shared_ptr<const Test>& test, PlannedTest::Role role) {
    if (planned.insert(test->id).second) plan.push_back({test, role, {}, 0});
  };
  const auto is_selected = [&](const auto& test) {
    return std::ranges::find(selected, test) != selected.end();
  };
  for (const auto& test : all) {
    const bool setup = overlaps(test->fixtures.setup, wanted);
    if (!setup && !overlaps(test->fixtures.cleanup, wanted)) continue;
    if (test->disabled && !is_selected(test)) continue;
    add(test, setup ? PlannedTest::Role::setup : PlannedTest::Role::cleanup);
  }
  for (const auto& test : selected) add(test, PlannedTest::Role::test);
  return plan;
}

}  // namespace unflake
