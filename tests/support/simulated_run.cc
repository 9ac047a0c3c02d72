#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "support/simulated_trace.h"
#include "support/task.h"
#include "trace/translation.h"

namespace unflake::simulated {
namespace {

using namespace std::chrono_literals;
using Kind = Step::Kind;
using Action = Intervention::Action;
using Position = Intervention::Position;
using Visits = Intervention::Visits;

constexpr Duration never = Duration::max();
constexpr Duration call_cost = 1us;
constexpr Duration look_cost = 100us;
constexpr Duration exit_grace = 1s;

struct Thread {
  const Script* script = nullptr;
  uint32_t number = 0;
  ThreadName name;
  SiteName created_at;
  std::map<uint32_t, uint64_t> visits;  // by site
  std::map<std::string, int> created;   // by place
  std::vector<TracedCall> calls;
  bool was_late = false;
  bool has_ended = false;
  bool woken = false;     // by a signal
  double time_scale = 1;  // of the call that it is in

  // What it waits for.
  std::function<bool()> ready;
  Duration deadline = never;
  uint64_t since = 0;
  std::coroutine_handle<> resume;
  Task life;
};

struct Pause {
  Thread& self;
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> handle) { self.resume = handle; }
  void await_resume() {}
};

bool is_call(Kind kind) {
  return kind >= Kind::call;
}

Failure failure_of(FailureKind kind) {
  Failure failure;
  failure.kind = kind;
  return failure;
}

class Run {
 public:
  Run(const Program& program, const Experiment& experiment, int nth)
      : program_(program),
        plan_(experiment.plan.agent ? experiment.plan : Plan()),
        conditions_(experiment.conditions),
        limit_(experiment.timeout),
        random_(program.seed * 7919 + static_cast<uint64_t>(nth)),
        told_(program, plan_) {
    for (size_t i = 0; i < plan_.interventions.size(); ++i)
      rules_[to_string(plan_.interventions[i].site)].push_back(i);
  }

  ExperimentResult operator()() {
    if (const std::string unknown = unknown_site(); !unknown.empty()) return not_started(unknown);
    const Thread& main = begin(program_.scripts.front(), thread_named("main"), {}, no_index);
    if (std::uniform_real_distribution()(random_) < program_.failure_rate)
      fail(main, plain_failure());
    while (!is_over()) step();
    return result();
  }

 private:
  // Time, and who is next.

  bool is_over() {
    if (crashed_ || timed_out_) return true;
    if (!threads_.front().has_ended) return false;
    const bool held = plan_.hold_exit && std::ranges::any_of(threads_, [](const Thread& thread) {
                        return thread.was_late && !thread.has_ended;
                      });
    return !held || state_.now >= last_delay_ends_ + exit_grace;
  }

  Duration wakes_at(const Thread& thread) const {
    if (thread.has_ended) return never;
    return thread.ready && thread.ready() ? state_.now : std::max(thread.deadline, state_.now);
  }

  void step() {
    const auto next = std::ranges::min_element(threads_, {}, [&](const Thread& thread) {
      return std::pair(wakes_at(thread), thread.since);
    });
    const bool is_exiting = threads_.front().has_ended;
    const Duration end = is_exiting ? std::min(limit_, last_delay_ends_ + exit_grace) : limit_;
    const Duration when = wakes_at(*next);
    if (!timers_.empty() && timers_.begin()->first < std::min(when, end)) return ring();
    state_.now = std::min(when, end);
    timed_out_ = when >= limit_ && state_.now == limit_;
    if (when < end) next->resume.resume();
  }

  void ring() {
    const auto timer = timers_.begin();
    state_.now = std::max(state_.now, timer->first);
    state_[timer->second + " is due"] = 1;
    wake(timer->second, true);
    timers_.erase(timer);
  }

  Pause until(Thread& self, std::function<bool()> ready, Duration deadline) {
    self.ready = std::move(ready);
    self.deadline = deadline;
    self.since = ++pauses_;
    return {self};
  }
  Pause pass(Thread& self, Duration duration) { return until(self, {}, state_.now + duration); }

  static Duration scaled(const Thread& self, Duration time) {
    return std::chrono::duration_cast<Duration>(time * self.time_scale);
  }
  Duration jitter() {
    return Duration(std::uniform_int_distribution<int64_t>(0, program_.jitter.count())(random_));
  }
  Duration stretched(Duration work) const {
    const double slower = (1 + conditions_.competitors) * (conditions_.one_core ? 2 : 1) /
                          std::clamp(conditions_.cpu_share, 0.01, 1.0);
    return std::chrono::duration_cast<Duration>(work * slower);
  }

  // What threads do.

  Thread& begin(const Script& script, ThreadName name, const SiteName& created_at,
                uint32_t parent) {
    Thread& thread = threads_.emplace_back();
    thread.script = &script;
    thread.number = told_.add_thread(name, parent, created_at, state_.now);
    thread.name = name;
    thread.created_at = created_at;
    thread.life = live(thread);
    return thread;
  }

  Task live(Thread& self) {
    co_await pass(self, call_cost);
    if (self.created_at.line > 0) co_await be_late(self, self.created_at, Position::start, 0);
    for (const Step& step : self.script->steps()) {
      if (step.site.line > 0) co_await probe(self, line_of(step.site));
      if (step.kind == Kind::enter) {
        told_.add_function(step.site.function);
        co_await probe(self, step.site);
      } else if (step.kind == Kind::work) {
        co_await pass(self, stretched(step.duration) + jitter());
      } else if (step.kind == Kind::change) {
        step.change(state_);
      } else if (step.kind == Kind::check) {
        if (!step.predicate(state_)) fail(self, step);
        if (crashed_) co_await until(self, {}, never);
      } else if (step.kind == Kind::wait || step.kind == Kind::wait_for) {
        co_await wait(self, step);
      } else if (step.kind == Kind::sleep && step.predicate) {
        while (!step.predicate(state_)) {
          co_await call(self, step, never);
          co_await pass(self, look_cost);
        }
      } else if (is_call(step.kind)) {
        co_await call(self, step, never);
      }
    }
    co_await be_late(self, end_of_thread(), Position::before, 0);
    self.has_ended = true;
    told_.end_thread(self.number, state_.now);
  }

  Task wait(Thread& self, const Step& step) {
    const bool timed = step.kind == Kind::wait_for;
    const Duration deadline = timed ? state_.now + step.duration : never;
    const auto satisfied = [&] { return step.predicate && step.predicate(state_); };
    while (!satisfied() && (!timed || state_.now < deadline)) {
      co_await call(self, step, deadline);
      if (!step.predicate || !self.woken) break;
    }
    if (!timed) co_return;
    state_[step.object + " timed out"] = step.predicate ? !satisfied() : !self.woken;
  }

  Task call(Thread& self, const Step& step, Duration deadline) {
    const uint32_t site = told_.site_number(step.site);
    if (site == no_index) {
      co_await perform(self, step, deadline, nullptr);
    } else {
      const uint64_t visit = self.visits[site]++;
      self.time_scale = 1;
      co_await be_late(self, step.site, Position::before, visit);
      const size_t number = self.calls.size();
      self.calls.push_back(call_of(self, step, site, deadline));
      if (deadline != never) deadline = state_.now + scaled(self, deadline - state_.now);
      co_await perform(self, step, deadline, &number);
      close(self, step, number);
      co_await be_late(self, step.site, Position::after, visit);
    }
    if (!step.mutex.empty()) co_await take(self, step.mutex);
  }

  Task perform(Thread& self, const Step& step, Duration deadline, const size_t* call) {
    uint64_t object = 0;
    switch (step.kind) {
      case Kind::lock:
        co_await take(self, step.object);
        break;
      case Kind::unlock:
        state_["mutex " + step.object] = 0;
        break;
      case Kind::sleep:
        co_await pass(self, scaled(self, step.duration) + jitter());
        if (step.object.empty()) break;
        co_await take(self, step.object);
        state_["mutex " + step.object] = 0;
        break;
      case Kind::create:
        object = 0x10000 + create(self, step).number;
        break;
      case Kind::join:
        co_await until(
            self, [&] { return all_ended(step.thread); }, never);
        object = 0x10000 + number_of(step.thread);
        break;
      case Kind::signal:
      case Kind::broadcast:
        wake(step.object, step.kind == Kind::broadcast);
        break;
      case Kind::wait:
      case Kind::wait_for:
        co_await block(self, step, deadline);
        break;
      case Kind::post:
        ++state_["semaphore " + step.object];
        break;
      case Kind::acquire:
        co_await until(
            self, [&] { return state_.is_set("semaphore " + step.object); }, never);
        --state_["semaphore " + step.object];
        break;
      case Kind::arm:
        timers_.emplace(state_.now + scaled(self, step.duration), step.object);
        break;
      default:
        break;
    }
    if (call && object != 0) self.calls[*call].object = object;
    co_await pass(self, call_cost);
  }

  Task take(Thread& self, const std::string& mutex) {
    const std::string name = "mutex " + mutex;
    if (state_.is_set(name))
      co_await until(
          self, [&] { return !state_.is_set(name); }, never);
    state_[name] = 1;
  }

  Task block(Thread& self, const Step& step, Duration deadline) {
    if (!step.mutex.empty()) state_["mutex " + step.mutex] = 0;
    std::vector<Thread*>& waiters = waiters_[step.object];
    waiters.push_back(&self);
    self.woken = false;
    co_await until(
        self, [&self] { return self.woken; }, deadline);
    std::erase(waiters, &self);
  }

  void wake(const std::string& condition, bool all) {
    for (Thread* waiter : waiters_[condition]) {
      if (waiter->woken) continue;
      waiter->woken = true;
      if (!all) return;
    }
  }

  Thread& create(Thread& self, const Step& step) {
    const std::string place = to_string(line_of(step.site));
    const ThreadName name = thread_named(fmt::format("{}#{}", place, ++self.created[place]));
    return begin(*step.thread, name, step.site, self.number);
  }

  bool all_ended(const Script* script) const {
    return std::ranges::all_of(threads_, [&](const Thread& thread) {
      return thread.script != script || thread.has_ended;
    });
  }

  uint32_t number_of(const Script* script) const {
    const auto found = std::ranges::find(threads_, script, &Thread::script);
    return found == threads_.end() ? 0 : found->number;
  }

  // What the plan does to them.

  bool is_for(const Intervention& what, const Thread& self) const {
    if (what.threads == Intervention::Threads::named) return what.thread.name == self.name.name;
    if (what.threads == Intervention::Threads::in_class)
      return what.thread.thread_class == self.name.thread_class;
    return true;
  }

  bool is_due(const Intervention& what, uint64_t visit) const {
    if (what.visits == Visits::only_nth) return visit == what.nth;
    return what.visits != Visits::from_nth || visit >= what.nth;
  }

  // The interventions that happen here, watches last; counts the visit for all of them.
  std::vector<size_t> due_at(const Thread& self, const SiteName& site, Position position) {
    std::vector<size_t> due;
    const auto here = rules_.find(to_string(site));
    if (here == rules_.end()) return due;
    for (const size_t i : here->second) {
      const Intervention& what = plan_.interventions[i];
      if (what.position != position || !is_for(what, self) ||
          (what.anchor && told_.intervention(*what.anchor).fired == 0) ||
          !is_due(what, ++told_.intervention(i).visits))
        continue;
      ++told_.intervention(i).fired;
      due.push_back(i);
    }
    std::ranges::stable_partition(
        due, [&](size_t i) { return plan_.interventions[i].action != Action::watch; });
    return due;
  }

  Task be_late(Thread& self, const SiteName& site, Position position, uint64_t visit) {
    for (const size_t i : due_at(self, site, position)) {
      const Intervention& what = plan_.interventions[i];
      if (what.action == Action::scale_time)
        self.time_scale = std::chrono::duration<double>(what.duration).count();
      if (what.action != Action::delay && what.action != Action::hold) continue;
      const bool halves = what.visits == Visits::halving;
      const Duration longest =
          halves ? what.duration / (1l << std::min<uint64_t>(visit, 62)) : what.duration;
      const Duration began = state_.now;
      self.was_late = true;
      last_delay_ends_ = std::max(last_delay_ends_, began + longest);
      co_await until(self, hold_of(what), began + longest);
      TracedIntervention& told = told_.intervention(i);
      told.added += state_.now - began;
      told.let_go += what.action == Action::hold && state_.now >= began + longest;
      TracedCall call = told_.call_at(self.number, told_.site_number(site), began);
      call.exit = state_.now;
      call.value = std::chrono::nanoseconds(longest).count();
      call.delayed = call.is_intervention = true;
      self.calls.push_back(call);
    }
  }

  std::function<bool()> hold_of(const Intervention& what) {
    if (what.action != Action::hold || !what.until) return {};
    return [this, &what] { return told_.intervention(*what.until).fired >= what.count; };
  }

  // Lines and functions are sites only of plans that name them.
  Task probe(Thread& self, const SiteName& site) {
    const bool is_extra =
        site.line == 0 && std::ranges::count(plan_.extra_functions, site.function);
    if (!is_extra && !rules_.contains(to_string(site))) co_return;
    const uint32_t number = told_.site_number(site);
    const uint64_t visit = self.visits[number]++;
    co_await be_late(self, site, Position::before, visit);
    self.calls.push_back(told_.call_at(self.number, number, state_.now));
  }

  // What is told of it.

  TracedCall call_of(const Thread& self, const Step& step, uint32_t site, Duration deadline) {
    TracedCall call = told_.call_at(self.number, site, state_.now);
    call.unfinished = true;
    if (!step.object.empty()) call.object = 0x1000 + std::hash<std::string>()(step.object) % 0xf000;
    const bool timed = step.kind == Kind::wait_for;
    if (timed || step.kind == Kind::sleep || step.kind == Kind::arm)
      call.value = std::chrono::nanoseconds(timed ? deadline - state_.now : step.duration).count();
    return call;
  }

  void close(Thread& self, const Step& step, size_t number) {
    TracedCall& call = self.calls[number];
    call.exit = state_.now;
    call.unfinished = false;
    call.timed_out = step.kind == Kind::sleep || (step.kind == Kind::wait_for && !self.woken);
  }

  static Step plain_failure() {
    Step step{.kind = Kind::check};
    step.site.file = "plain.cc";
    step.site.line = 1;
    return step;
  }

  void fail(const Thread& self, const Step& check) {
    crashed_ = check.is_fatal;
    Failure failure;
    failure.kind = crashed_ ? FailureKind::signal : FailureKind::assertion;
    failure.file = "/project/" + check.site.file;
    failure.line = check.site.line;
    failure.function = check.function;
    outcome_.failures.push_back(failure);
    told_.add_failure(self.number, check, state_.now);
  }

  std::string unknown_site() const {
    std::set<std::string> known{to_string(end_of_thread())};
    for (const Script& script : program_.scripts)
      for (const Step& step : script.steps()) {
        known.insert(to_string(step.site));
        known.insert(to_string(line_of(step.site)));
      }
    for (const Intervention& what : plan_.interventions)
      if (!known.contains(to_string(what.site))) return to_string(what.site);
    return "";
  }

  ExperimentResult not_started(const std::string& site) const {
    ExperimentResult result;
    result.process.end = ProcessResult::End::not_started;
    result.process.error = "there is no site " + site;
    result.outcome.kind = OutcomeKind::fail;
    result.outcome.failures = {failure_of(FailureKind::not_started)};
    result.outcome.signature = signature_of(result.outcome.failures.front());
    result.trace = std::make_shared<Trace>();
    return result;
  }

  ExperimentResult result() {
    ExperimentResult result;
    if (timed_out_) outcome_.failures = {failure_of(FailureKind::timeout)};
    if (!outcome_.failures.empty()) {
      outcome_.kind = timed_out_ ? OutcomeKind::timeout
                      : crashed_ ? OutcomeKind::crash
                                 : OutcomeKind::fail;
      outcome_.signature = signature_of(outcome_.failures.front());
    }
    outcome_.duration = result.process.duration = state_.now;
    if (timed_out_) result.process.end = ProcessResult::End::timed_out;
    if (crashed_) result.process.end = ProcessResult::End::signalled;
    result.process.code = crashed_ ? 11 : outcome_.failed();
    result.outcome = outcome_;
    for (const Thread& thread : threads_) {
      told_.add_visits(thread.number, thread.visits, thread.calls);
      told_.add_calls(thread.calls);
    }
    if (plan_.agent) result.trace = told_.finish();
    return result;
  }

  const Program& program_;
  const Plan plan_;
  const Conditions conditions_;
  const Duration limit_;
  std::mt19937_64 random_;
  State state_;
  std::map<std::string, std::vector<Thread*>> waiters_;
  std::multimap<Duration, std::string> timers_;       // conditions by when they are due
  std::map<std::string, std::vector<size_t>> rules_;  // interventions by site
  Duration last_delay_ends_{};
  uint64_t pauses_ = 0;
  bool crashed_ = false;
  bool timed_out_ = false;
  TraceWriter told_;
  Outcome outcome_;
  std::deque<Thread> threads_;  // last: what they do refers to all the rest
};

}  // namespace

ExperimentResult run(const Program& program, const Experiment& experiment, int nth) {
  return Run(program, experiment, nth)();
}

}  // namespace unflake::simulated
