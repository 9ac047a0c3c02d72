#include "support/controlled_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "model/outcome.h"
#include "protocol/samplers.h"
#include "util/text.h"

namespace unflake::simulated {

using namespace std::chrono_literals;
using Kind = Operation::Kind;

ControlledScript& ControlledScript::add(Operation operation, const std::string& place,
                                        const std::string& api) {
  const size_t colon = place.find(':');
  operation.site.file = place.substr(0, colon);
  operation.site.line = std::stoi(place.substr(colon + 1));
  operation.site.api = api;
  operations_.push_back(std::move(operation));
  return *this;
}

ControlledScript& ControlledScript::read(const std::string& place, const std::string& variable) {
  const auto effect = [variable](View view) { view.own[variable] = view.shared[variable]; };
  return add({.kind = Kind::read, .object = variable, .effect = effect}, place, "");
}

ControlledScript& ControlledScript::write(const std::string& place, const std::string& variable,
                                          Effect effect) {
  return add({.kind = Kind::write, .object = variable, .effect = std::move(effect)}, place, "");
}

ControlledScript& ControlledScript::set(const std::string& place, const std::string& variable,
                                        int value) {
  return write(place, variable, [variable, value](View view) { view.shared[variable] = value; });
}

ControlledScript& ControlledScript::increment(const std::string& place,
                                              const std::string& variable) {
  read(place, variable);
  return write(place, variable,
               [variable](View view) { view.shared[variable] = view.own[variable] + 1; });
}

ControlledScript& ControlledScript::lock(const std::string& place, const std::string& mutex) {
  return add({.kind = Kind::lock, .object = mutex}, place, "pthread_mutex_lock");
}

ControlledScript& ControlledScript::unlock(const std::string& place, const std::string& mutex) {
  return add({.kind = Kind::unlock, .object = mutex}, place, "pthread_mutex_unlock");
}

ControlledScript& ControlledScript::wait(const std::string& place, const std::string& condition,
                                         const std::string& mutex, Condition until) {
  return add({.kind = Kind::wait, .object = condition, .mutex = mutex, .holds = std::move(until)},
             place, "pthread_cond_wait");
}

ControlledScript& ControlledScript::signal(const std::string& place, const std::string& condition) {
  return add({.kind = Kind::signal, .object = condition}, place, "pthread_cond_signal");
}

ControlledScript& ControlledScript::spawn(const std::string& place, size_t thread) {
  return add({.kind = Kind::spawn, .thread = thread}, place, "pthread_create");
}

ControlledScript& ControlledScript::join(const std::string& place, size_t thread) {
  return add({.kind = Kind::join, .thread = thread}, place, "pthread_join");
}

ControlledScript& ControlledScript::sleep(const std::string& place, Duration duration) {
  return add({.kind = Kind::sleep, .duration = duration}, place, "nanosleep");
}

ControlledScript& ControlledScript::local(Effect effect) {
  operations_.push_back({.kind = Kind::local, .effect = std::move(effect)});
  return *this;
}

ControlledScript& ControlledScript::check(const std::string& place, Condition holds) {
  return add({.kind = Kind::check, .holds = std::move(holds)}, place, "");
}

namespace {

constexpr size_t most_points = 20000;
const Operation the_end{.kind = Kind::end};

uint64_t number_of(const std::string& object) {
  return object.empty() ? 0 : fnv1a(object) >> 8 | 1;
}

class ControlledWorld {
 public:
  ControlledWorld(const ControlledProgram& program, const Schedule& schedule)
      : program_(program), schedule_(schedule) {
    protocol::SamplerPlan plan{};
    plan.kind = static_cast<protocol::SamplerKind>(schedule.sampler);
    plan.seed = schedule.seed;
    plan.depth = static_cast<uint32_t>(schedule.depth);
    plan.length = schedule.length;
    plan.selected = schedule.selected.data();
    plan.selected_count = static_cast<uint32_t>(schedule.selected.size());
    plan.remaining = schedule.remaining.data();
    plan.remaining_count = static_cast<uint32_t>(schedule.remaining.size());
    sampler_->begin(plan);
  }

  ExperimentResult run() {
    start_thread(0, "main");
    run_.digest = fnv1a_start;
    reach(0);
    ThreadNumber arrived = 0;
    while (!failure_ && next_thread(arrived)) {
      perform(arrived);
      if (!failure_) reach(arrived);
    }
    return result();
  }

 private:
  struct Thread {
    size_t script = 0;
    size_t at = 0;
    std::map<std::string, int> own;
    Operation pending;
    Duration deadline{}, ready_since{};
    bool was_signalled = false;
    bool has_ended = false;
  };

  void start_thread(size_t script, const std::string& name) {
    const auto number = static_cast<ThreadNumber>(threads_.size());
    by_script_[script] = number;
    threads_.emplace_back();
    threads_.back().script = script;
    threads_.back().ready_since = now_;
    // It does nothing but start when it is chosen for the first time.
    threads_.back().pending.kind = Kind::local;
    TracedThread traced;
    traced.name.text = name;
    traced.name.name = fnv1a(name);
    trace_.threads.push_back(traced);
    run_.threads.push_back(number);
    sampler_->announce(number, {0, false});
  }

  View view_of(Thread& thread) { return {shared_, thread.own}; }

  static bool is_memory(const Operation& operation) {
    return operation.kind == Kind::read || operation.kind == Kind::write;
  }

  bool is_switch_point(const Operation& operation) const {
    if (is_memory(operation) && program_.memory_needs_accesses)
      return std::ranges::count(schedule_.accesses, operation.site) > 0;
    return operation.kind != Kind::local && operation.kind != Kind::check;
  }

  // What is local up to the next switch point, and says what is to be done there.
  void reach(ThreadNumber number) {
    Thread& thread = threads_[number];
    if (thread.has_ended) return;
    if (thread.pending.kind != Kind::reacquire && thread.pending.kind != Kind::wake) {
      const auto& operations = program_.scripts[thread.script].operations();
      while (thread.at < operations.size() && !is_switch_point(operations[thread.at])) {
        do_locally(number, operations[thread.at++]);
        if (failure_) return;
      }
      thread.pending = thread.at < operations.size() ? operations[thread.at++] : the_end;
    }
    thread.ready_since = now_;
    sampler_->announce(number, {object_of(thread.pending), writes(thread.pending)});
  }

  void do_locally(ThreadNumber number, const Operation& operation) {
    if (operation.effect) operation.effect(view_of(threads_[number]));
    if (operation.kind != Kind::check || operation.holds(view_of(threads_[number]))) return;
    failure_.emplace();
    failure_->kind = FailureKind::assertion;
    failure_->file = operation.site.file;
    failure_->line = operation.site.line;
    failure_->message = "check failed";
  }

  static uint64_t object_of(const Operation& operation) {
    return number_of(operation.kind == Kind::reacquire ? operation.mutex : operation.object);
  }
  static bool writes(const Operation& operation) { return operation.kind != Kind::read; }

  bool is_free(const std::string& mutex) const { return owners_.count(mutex) == 0; }

  bool can_go(const Thread& thread) const {
    const Operation& next = thread.pending;
    if (thread.has_ended) return false;
    switch (next.kind) {
      case Kind::lock:
        return is_free(next.object);
      case Kind::reacquire:
        return thread.was_signalled && is_free(next.mutex);
      case Kind::join: {
        const auto other = by_script_.find(next.thread);
        return other != by_script_.end() && threads_[other->second].has_ended;
      }
      case Kind::wake:
        return thread.deadline <= now_;
      case Kind::end:
        // The exit of main comes last.
        return &thread != &threads_.front() ||
               std::ranges::count_if(threads_, [](const Thread& t) { return !t.has_ended; }) == 1;
      default:
        return true;
    }
  }

  // Sleepers may come early by as much as somebody who could go on is allowed to be late.
  std::vector<ThreadNumber> enabled() const {
    std::vector<ThreadNumber> all;
    std::optional<Duration> oldest;
    for (const Thread& thread : threads_)
      if (can_go(thread))
        oldest = std::min(oldest.value_or(thread.ready_since), thread.ready_since);
    for (ThreadNumber i = 0; i < threads_.size(); ++i) {
      const Thread& thread = threads_[i];
      const bool may_wake = oldest && !thread.has_ended && thread.pending.kind == Kind::wake &&
                            schedule_.stall > 0us && thread.deadline <= *oldest + schedule_.stall;
      if (can_go(thread) || may_wake) all.push_back(i);
    }
    return all;
  }

  bool pass_time() {
    std::optional<Duration> earliest;
    for (const Thread& thread : threads_)
      if (!thread.has_ended && thread.pending.kind == Kind::wake)
        earliest = std::min(earliest.value_or(thread.deadline), thread.deadline);
    if (earliest) now_ = std::max(now_, *earliest);
    return earliest.has_value();
  }

  // Decides; `thread` is who arrived, and then who goes on. False when nobody can.
  bool next_thread(ThreadNumber& thread) {
    std::vector<ThreadNumber> can = enabled();
    if (can.empty() && pass_time()) can = enabled();
    if (can.empty() || run_.points_in_all >= most_points) {
      note_deadlock();
      return false;
    }
    SwitchPoint point;
    const Operation& pending = threads_[thread].pending;
    point.thread = thread;
    if (!threads_[thread].has_ended) {
      point.site = site_number(pending);
      point.object = object_of(pending);
      point.writes = writes(pending);
    }
    point.enabled = can;
    point.chosen = chosen_at(run_.points_in_all, can, thread);
    if (point.chosen != thread) ++run_.switches;
    run_.digest = fnv1a(fmt::format("{},", point.chosen), run_.digest);
    thread = point.chosen;
    run_.points.push_back(std::move(point));
    ++run_.points_in_all;
    return true;
  }

  ThreadNumber chosen_at(uint64_t number, const std::vector<ThreadNumber>& can,
                         ThreadNumber running) {
    for (const Decision& decision : schedule_.decisions) {
      if (decision.point == number && std::ranges::count(can, decision.thread) > 0)
        return decision.thread;
    }
    return sampler_->choose(can.data(), static_cast<uint32_t>(can.size()), running);
  }

  void perform(ThreadNumber number) {
    const Operation operation = threads_[number].pending;
    Thread* thread = &threads_[number];
    thread->pending = Operation{};
    sampler_->execute(number);
    switch (operation.kind) {
      case Kind::read:
      case Kind::write:
        operation.effect(view_of(*thread));
        break;
      case Kind::lock:
        owners_[operation.object] = number;
        break;
      case Kind::unlock:
        owners_.erase(operation.object);
        break;
      case Kind::wait:
        if (operation.holds && operation.holds(view_of(*thread))) break;
        owners_.erase(operation.mutex);
        thread->was_signalled = false;
        waiters_[operation.object].push_back(number);
        thread->pending = operation;
        thread->pending.kind = Kind::reacquire;
        break;
      case Kind::reacquire:
        owners_[operation.mutex] = number;
        if (operation.holds && !operation.holds(view_of(*thread))) --thread->at;  // waits again
        break;
      case Kind::signal:
        wake_waiter(operation.object);
        break;
      case Kind::spawn:
        start_thread(operation.thread,
                     fmt::format("{}:{}#1", operation.site.file, operation.site.line));
        break;
      case Kind::sleep:
        thread->deadline = now_ + operation.duration;
        thread->pending = operation;
        thread->pending.kind = Kind::wake;
        break;
      case Kind::wake:
        now_ = std::max(now_, thread->deadline);
        break;
      case Kind::end:
        thread->has_ended = true;
        sampler_->end(number);
        break;
      default:
        break;
    }
  }

  void wake_waiter(const std::string& condition) {
    auto& waiting = waiters_[condition];
    if (waiting.empty()) return;
    threads_[waiting.front()].was_signalled = true;
    waiting.erase(waiting.begin());
  }

  void note_deadlock() {
    for (ThreadNumber i = 0; i < threads_.size(); ++i) {
      const Thread& thread = threads_[i];
      if (thread.has_ended || thread.pending.kind == Kind::end) continue;
      DeadlockedThread stuck{i, site_number(thread.pending), object_of(thread.pending), {}};
      const auto owner = owners_.find(thread.pending.object);
      if (thread.pending.kind == Kind::lock && owner != owners_.end())
        stuck.held_by = owner->second;
      if (thread.pending.kind == Kind::join)
        if (const auto other = by_script_.find(thread.pending.thread); other != by_script_.end())
          stuck.held_by = other->second;
      run_.deadlock.push_back(stuck);
    }
  }

  uint32_t site_number(const Operation& operation) {
    if (operation.kind == Kind::end || operation.kind == Kind::local) return no_index;
    for (uint32_t i = 0; i < trace_.sites.size(); ++i)
      if (trace_.sites[i].name == operation.site) return i;
    TracedSite site;
    site.name = operation.site;
    site.group = operation.site.api.empty() ? "probe" : "lock";
    site.location = fmt::format("{}:{}", operation.site.file, operation.site.line);
    trace_.sites.push_back(site);
    return static_cast<uint32_t>(trace_.sites.size() - 1);
  }

  // Of variables that several threads use.
  std::vector<SiteName> shared_accesses() const {
    std::map<std::string, std::set<const ControlledScript*>> users;
    for (const ControlledScript& script : program_.scripts)
      for (const Operation& operation : script.operations())
        if (is_memory(operation)) users[operation.object].insert(&script);
    std::set<SiteName> sites;
    for (const ControlledScript& script : program_.scripts)
      for (const Operation& operation : script.operations())
        if (is_memory(operation) && users[operation.object].size() > 1)
          sites.insert(operation.site);
    return {sites.begin(), sites.end()};
  }

  ExperimentResult result() {
    if (schedule_.find_accesses) run_.shared_accesses = shared_accesses();
    ExperimentResult result;
    if (!run_.deadlock.empty()) {
      failure_.emplace();
      failure_->kind = FailureKind::timeout;
      failure_->message = "deadlock";
    }
    if (failure_) {
      result.outcome.kind = run_.deadlock.empty() ? OutcomeKind::fail : OutcomeKind::timeout;
      result.outcome.signature = signature_of(*failure_);
      result.outcome.failures = {*failure_};
    }
    result.outcome.duration = result.process.duration = 1ms;
    run_.virtual_time = now_;
    run_.not_repeatable = program_.not_repeatable;
    trace_.controlled = std::move(run_);
    result.trace = std::make_shared<Trace>(std::move(trace_));
    return result;
  }

  const ControlledProgram& program_;
  const Schedule& schedule_;
  std::unique_ptr<protocol::Sampler> sampler_ = std::make_unique<protocol::Sampler>();
  std::deque<Thread> threads_;
  std::map<size_t, ThreadNumber> by_script_;
  std::map<std::string, int> shared_;
  std::map<std::string, ThreadNumber> owners_;
  std::map<std::string, std::vector<ThreadNumber>> waiters_;
  Duration now_{};
  ControlledRun run_;
  Trace trace_;
  std::optional<Failure> failure_;
};

}  // namespace

ExperimentResult run_controlled(const ControlledProgram& program, const Schedule& schedule) {
  return ControlledWorld(program, schedule).run();
}

AllOutcomes all_outcomes(const ControlledProgram& program, int most_preemptions) {
  AllOutcomes all;
  std::vector<std::vector<ThreadNumber>> to_do{{}};  // every choice of a run's beginning
  while (!to_do.empty()) {
    const std::vector<ThreadNumber> prefix = std::move(to_do.back());
    to_do.pop_back();
    Schedule schedule;
    for (size_t i = 0; i < prefix.size(); ++i) schedule.decisions.push_back({i, prefix[i]});
    const ExperimentResult result = run_controlled(program, schedule);
    const ControlledRun& run = *result.trace->controlled;
    ++all.schedules;
    ++all.schedules_with[run.deadlock.empty() ? result.outcome.signature : "deadlock"];
    int preemptions = 0;
    std::vector<ThreadNumber> path;
    for (size_t i = 0; i < run.points.size(); ++i) {
      const SwitchPoint& point = run.points[i];
      const bool can_stay = std::ranges::count(point.enabled, point.thread) > 0;
      for (const ThreadNumber other : point.enabled) {
        if (i < prefix.size() || other == point.chosen) continue;
        if (preemptions + (can_stay ? 1 : 0) > most_preemptions) continue;
        to_do.push_back(path);
        to_do.back().push_back(other);
      }
      if (can_stay && point.chosen != point.thread) ++preemptions;
      path.push_back(point.chosen);
    }
  }
  return all;
}

namespace {

// A main that starts all threads, waits for them, and then checks.
void start_and_join(ControlledProgram& program, size_t threads) {
  for (size_t i = 1; i <= threads; ++i) program.main().spawn(fmt::format("main.cc:{}", i), i);
  for (size_t i = 1; i <= threads; ++i) program.main().join(fmt::format("main.cc:{}", 20 + i), i);
}

}  // namespace

ControlledProgram lost_update(int threads) {
  ControlledProgram program;
  for (int i = 0; i < threads; ++i)
    program.scripts[program.add_thread()].increment("sum.cc:5", "sum");
  start_and_join(program, static_cast<size_t>(threads));
  program.main().read("main.cc:50", "sum").check("main.cc:51", [threads](View view) {
    return view.own["sum"] == threads;
  });
  return program;
}

ControlledProgram locked_updates(int threads) {
  ControlledProgram program;
  for (int i = 0; i < threads; ++i)
    program.scripts[program.add_thread()]
        .lock("sum.cc:4", "m")
        .increment("sum.cc:5", "sum")
        .unlock("sum.cc:6", "m");
  start_and_join(program, static_cast<size_t>(threads));
  program.main().read("main.cc:50", "sum").check("main.cc:51", [threads](View view) {
    return view.own["sum"] == threads;
  });
  return program;
}

ControlledProgram crossed_locks() {
  ControlledProgram program;
  program.scripts[program.add_thread()]
      .lock("left.cc:1", "a")
      .lock("left.cc:2", "b")
      .unlock("left.cc:3", "b")
      .unlock("left.cc:4", "a");
  program.scripts[program.add_thread()]
      .lock("right.cc:1", "b")
      .lock("right.cc:2", "a")
      .unlock("right.cc:3", "a")
      .unlock("right.cc:4", "b");
  start_and_join(program, 2);
  return program;
}

ControlledProgram half_reading(int writers) {
  ControlledProgram program;
  for (int i = 0; i < writers; ++i)
    program.scripts[program.add_thread()]
        .set("sensor.cc:1", "low", 1)
        .set("sensor.cc:2", "high", 1);
  program.scripts[program.add_thread()]
      .read("display.cc:1", "low")
      .read("display.cc:2", "high")
      .check("display.cc:3", [](View view) { return view.own["low"] == view.own["high"]; });
  start_and_join(program, static_cast<size_t>(writers) + 1);
  return program;
}

ControlledProgram missed_signal() {
  ControlledProgram program;
  program.scripts[program.add_thread()]
      .lock("wait.cc:1", "m")
      .wait("wait.cc:2", "ready", "m")
      .unlock("wait.cc:3", "m");
  program.scripts[program.add_thread()]
      .lock("signal.cc:1", "m")
      .signal("signal.cc:2", "ready")
      .unlock("signal.cc:3", "m");
  start_and_join(program, 2);
  return program;
}

ControlledProgram late_worker(Duration patience) {
  ControlledProgram program;
  const size_t worker = program.add_thread();
  program.scripts[worker]
      .lock("worker.cc:1", "m")
      .set("worker.cc:2", "done", 1)
      .unlock("worker.cc:3", "m");
  program.main()
      .spawn("main.cc:1", worker)
      .sleep("main.cc:2", patience)
      .lock("main.cc:3", "m")
      .read("main.cc:4", "done")
      .unlock("main.cc:5", "m")
      .check("main.cc:6", [](View view) { return view.own["done"] == 1; })
      .join("main.cc:7", worker);
  return program;
}

}  // namespace unflake::simulated
