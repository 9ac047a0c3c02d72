#include "search/schedule/races.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "search/schedule/portfolio.h"
#include "trace/happens_before.h"
#include "trace/names.h"

namespace unflake {
namespace {

using Clock = std::vector<uint32_t>;  // by thread: how much of what it did is known

constexpr uint64_t thread_mask = 0xffff;
constexpr uint64_t granule_size = 8;
constexpr uint8_t usual_size = 4;
constexpr uint64_t profiles = 3;  // schedules under which shared memory is looked for

void join_clocks(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

const SharedVariable* variable_at(const ControlledRun& run, uint64_t address) {
  const auto found = std::ranges::lower_bound(run.variables, address, {}, &SharedVariable::address);
  return found != run.variables.end() && found->address == address ? &*found : nullptr;
}

const AccessInstruction* instruction_at(const ControlledRun& run, uint32_t site) {
  const auto found = std::ranges::find(run.instructions, site, &AccessInstruction::site);
  return found != run.instructions.end() ? &*found : nullptr;
}

bool is_memory_access(const Trace& trace, const ThreadAccess& access) {
  return access.site < trace.sites.size() && trace.sites[access.site].name.api.empty() &&
         access.object != no_object;
}

// Goes through a run as it happened, and hands clocks over wherever one thread waits for another.
class RaceReplay {
 public:
  RaceReplay(const Trace& trace, const AtomicSites& atomic_sites)
      : trace_(trace), run_(*trace.controlled), clocks_(1, Clock{1}) {
    facts_.resize(trace.sites.size());
    for (const AccessInstruction& instruction : run_.instructions)
      if (instruction.site < facts_.size()) facts_[instruction.site] = &instruction;
    for (const TracedSite& site : trace.sites)
      is_atomic_.push_back(atomic_sites.contains(site.name));
  }

  std::vector<RacyPair> operator()() {
    PendingAccesses pending;
    for (const SwitchPoint& point : run_.points) {
      pending.arrive(point);
      if (is_end(point)) ended_.push_back(point.thread);
      for (const ThreadNumber thread : point.enabled) begin_thread(thread, point.thread);
      begin_thread(point.thread, point.thread);
      perform(pending.of(point.chosen));
    }
    std::vector<RacyPair> found;
    for (auto& [sites, pair] : pairs_) found.push_back(pair);
    return found;
  }

 private:
  struct Seen {
    RacyAccess access;
    uint32_t epoch = 0;
  };

  Clock& clock_of(ThreadNumber thread) {
    if (thread >= clocks_.size()) clocks_.resize(thread + 1);
    Clock& clock = clocks_[thread];
    if (clock.size() <= thread) clock.resize(thread + 1);
    return clock;
  }

  // Who can go on for the first time was created by the thread that has arrived.
  void begin_thread(ThreadNumber thread, ThreadNumber creator) {
    if (clock_of(thread)[thread] != 0) return;
    if (thread != creator) {
      const Clock known = clock_of(creator);
      join_clocks(clock_of(thread), known);
      pass_on(creator);
    }
    // It may have the stack of a thread that has ended.
    for (const ThreadNumber ended : ended_) {
      const Clock known = clock_of(ended);
      join_clocks(clock_of(thread), known);
    }
    clock_of(thread)[thread] = 1;
  }

  static bool is_end(const SwitchPoint& point) {
    return point.site == no_index && point.object == no_object && !can_stay(point);
  }

  // What the thread does from now on, nobody knows yet.
  void pass_on(ThreadNumber thread) { ++clock_of(thread)[thread]; }

  void release(ThreadNumber thread, Clock& to) {
    join_clocks(to, clock_of(thread));
    pass_on(thread);
  }

  void perform(const ThreadAccess& access) {
    const bool has_site = access.site < trace_.sites.size();
    if ((access.object & ~thread_mask) == thread_object &&
        (!has_site || trace_.sites[access.site].group == "thread"))
      return join(access);
    if (!has_site) return;
    if (is_memory_access(trace_, access)) return touch(access);
    const TracedSite& site = trace_.sites[access.site];
    if (waits_.contains(access.thread) && waits_[access.thread].site != access.site)
      waits_.erase(access.thread);
    if (access.object == no_object) return;
    if (site.group == "thread") return;
    if (site.group == "condition") return wait(access, site);
    if (is_lock(site)) return lock(access, site);
    if (site.group == "once") return do_once(access);
    hand_over(access, site);
  }

  void join(const ThreadAccess& access) {
    const uint64_t joined = access.object & thread_mask;
    if (joined >= clocks_.size()) return;
    const Clock known = clocks_[joined];
    join_clocks(clock_of(access.thread), known);
  }

  // A condition orders nothing by itself: its mutex does, which is given back and taken again. That
  // is the one that the thread took last.
  void wait(const ThreadAccess& access, const TracedSite& site) {
    if (!may_wait(site)) return;
    const auto waits = waits_.find(access.thread);
    if (waits != waits_.end()) {
      take(access.thread, waits->second.mutex, false);
      waits_.erase(waits);
      return;
    }
    auto& held = held_[access.thread];
    if (held.empty()) return;
    const uint64_t mutex = held.back().object;
    give_back(access.thread, mutex);
    waits_[access.thread] = {access.site, mutex};
  }

  void lock(const ThreadAccess& access, const TracedSite& site) {
    if (is_unlock(site))
      give_back(access.thread, access.object);
    else
      take(access.thread, access.object, !access.writes);
  }

  void take(ThreadNumber thread, uint64_t object, bool is_reader) {
    join_clocks(clock_of(thread), objects_[object]);
    if (!is_reader) join_clocks(clock_of(thread), readers_[object]);
    held_[thread].push_back({object, is_reader});
  }

  void give_back(ThreadNumber thread, uint64_t object) {
    auto& held = held_[thread];
    const auto last = std::find_if(held.rbegin(), held.rend(),
                                   [&](const auto& one) { return one.object == object; });
    const bool is_reader = last != held.rend() && last->is_reader;
    if (last != held.rend()) held.erase(std::next(last).base());
    release(thread, is_reader ? readers_[object] : objects_[object]);
  }

  // Whoever comes second goes on when the first one is done; when that was is not seen.
  void do_once(const ThreadAccess& access) {
    const auto [first, is_new] = doers_.try_emplace(access.object, access.thread);
    if (is_new || first->second == access.thread) return;
    const Clock known = clock_of(first->second);
    join_clocks(clock_of(access.thread), known);
    pass_on(first->second);
  }

  // The two ends of a pipe have two numbers, so all descriptors are one object.
  void hand_over(const ThreadAccess& access, const TracedSite& site) {
    const bool is_descriptor = shared_part(access.object) == descriptor_object;
    Clock& object = objects_[shared_part(access.object)];
    const bool gives = can_wake(site);
    if (!gives || (may_wait(site) && !is_descriptor)) join_clocks(clock_of(access.thread), object);
    if (gives) release(access.thread, object);
  }

  void touch(const ThreadAccess& access) {
    const AccessInstruction* facts = facts_[access.site];
    const bool is_atomic = is_atomic_[access.site];
    const uint8_t size = facts != nullptr && facts->size > 0 ? facts->size : usual_size;
    remember(
        {access.thread, access.site, access.stack, access.object, size, access.writes, is_atomic});
    if (!is_atomic) return;
    Clock& object = objects_[access.object];
    const bool reads = facts != nullptr ? facts->reads : !access.writes;
    if (reads) join_clocks(clock_of(access.thread), object);
    if (!access.writes) return;
    if (!reads) object.clear();  // a store ends what earlier ones have begun
    release(access.thread, object);
  }

  void remember(const RacyAccess& access) {
    const uint64_t last = access.address + access.size - 1;
    for (uint64_t granule = access.address / granule_size; granule <= last / granule_size;
         ++granule)
      remember_in(touched_[granule], access);
  }

  void remember_in(std::vector<Seen>& seen, const RacyAccess& access) {
    for (const Seen& earlier : seen)
      if (is_race(earlier, access)) add_pair(earlier.access, access);
    const auto same = std::ranges::find_if(seen, [&](const Seen& earlier) {
      return earlier.access.thread == access.thread && earlier.access.site == access.site &&
             earlier.access.writes == access.writes && earlier.access.address == access.address;
    });
    const uint32_t epoch = clock_of(access.thread)[access.thread];
    if (same != seen.end())
      *same = {access, epoch};
    else
      seen.push_back({access, epoch});
  }

  bool is_race(const Seen& earlier, const RacyAccess& access) {
    const RacyAccess& first = earlier.access;
    if (first.thread == access.thread || !(first.writes || access.writes)) return false;
    if (first.is_atomic && access.is_atomic) return false;
    if (first.address + first.size <= access.address ||
        access.address + access.size <= first.address)
      return false;
    const Clock& known = clock_of(access.thread);
    return first.thread >= known.size() || known[first.thread] < earlier.epoch;
  }

  void add_pair(const RacyAccess& first, const RacyAccess& second) {
    const std::pair a(first.site, first.writes), b(second.site, second.writes);
    pairs_.try_emplace({std::min(a, b), std::max(a, b)}, RacyPair{first, second});
  }

  struct HeldLock {
    uint64_t object = 0;
    bool is_reader = false;
  };
  struct ConditionWait {
    uint32_t site = no_index;
    uint64_t mutex = 0;
  };
  using Side = std::pair<uint32_t, bool>;  // an instruction, and whether it writes

  const Trace& trace_;
  const ControlledRun& run_;
  std::vector<const AccessInstruction*> facts_;  // by site
  std::vector<bool> is_atomic_;                  // by site
  std::vector<Clock> clocks_;
  std::map<uint64_t, Clock> objects_, readers_;
  std::map<uint64_t, ThreadNumber> doers_;  // of what is done once
  std::map<ThreadNumber, std::vector<HeldLock>> held_;
  std::map<ThreadNumber, ConditionWait> waits_;
  std::vector<ThreadNumber> ended_;
  std::map<uint64_t, std::vector<Seen>> touched_;  // by granule
  std::map<std::pair<Side, Side>, RacyPair> pairs_;
};

}  // namespace

void add_atomic_sites(const Trace& trace, AtomicSites& sites) {
  const ControlledRun& run = *trace.controlled;
  std::set<uint64_t> atomics;  // addresses
  std::vector<bool> is_atomic(trace.sites.size());
  for (const AccessInstruction& instruction : run.instructions)
    if (instruction.site < trace.sites.size()) is_atomic[instruction.site] = instruction.is_atomic;
  for (const SharedVariable& variable : run.variables)
    if (variable.is_atomic) atomics.insert(variable.address);
  const std::vector<ThreadAccess> accesses = executed_accesses(run);
  for (const ThreadAccess& access : accesses)
    if (is_memory_access(trace, access) && is_atomic[access.site]) atomics.insert(access.object);
  for (const ThreadAccess& access : accesses)
    if (is_memory_access(trace, access) &&
        (is_atomic[access.site] || atomics.contains(access.object)))
      sites.insert(trace.sites[access.site].name);
}

std::vector<RacyPair> find_races(const Trace& trace, const AtomicSites& atomic_sites) {
  return RaceReplay(trace, atomic_sites)();
}

namespace {

// Where a program without a random layout has what.
std::string region_of(uint64_t address) {
  constexpr uint64_t first_of_stack = 0x7ffff8000000, first_of_program = 0x555555554000,
                     first_behind_heap = 0x600000000000;
  if (address >= first_of_stack) return "on the stack of the main thread";
  if (address >= first_of_program && address < first_behind_heap) return "on the heap";
  return "on the heap or the stack of a thread";
}

const Frame* first_project_frame(const TracedStack& stack) {
  for (const TracedFrame& frame : stack.frames)
    if (frame.first_project < frame.source.size()) return &frame.source[frame.first_project];
  return nullptr;
}

class RaceSearch {
 public:
  RaceSearch(TrialRunner& runner, const RaceOptions& options)
      : options_(options), runner_(runner), runs_(runner, options.plan, options.limits) {}

  Result<RaceReport> operator()() {
    report_.test = runner_.test().id;
    report_.seed = options_.seed;
    report_.budget = options_.limits.budget;
    look_for_accesses();
    if (!runs_.is_over() && !accesses_.empty()) watch();
    if (runner_.error()) return *runner_.error();
    judge();
    finish();
    return std::move(report_);
  }

 private:
  void step(const std::string& text) { runner_.teller().say(text); }

  // What nobody reaches under one schedule may be reached under another, also one that exchanges
  // threads at the accesses that are known by then.
  void look_for_accesses() {
    step("instructions that touch memory of several threads");
    for (uint64_t i = 0; i < profiles; ++i) {
      Schedule schedule;
      schedule.find_accesses = true;
      schedule.sampler = i == 0 ? Sampler::stay : Sampler::random_walk;
      schedule.seed = options_.seed + i;
      const auto run = runs_.run(with_accesses(schedule));
      if (!run) break;
      report_.threads = std::max(report_.threads, profile_of(run->trace()).threads);
      add_accesses(run->controlled());
      ++profiles_;
    }
  }

  void add_accesses(const ControlledRun& run) {
    report_.guarded_accesses = std::max(report_.guarded_accesses, run.guarded_accesses);
    accesses_.insert(run.shared_accesses.begin(), run.shared_accesses.end());
    hot_accesses_.insert(run.hot_accesses.begin(), run.hot_accesses.end());
  }

  Schedule with_accesses(Schedule schedule) const {
    schedule.accesses.assign(accesses_.begin(), accesses_.end());
    schedule.hot_accesses.assign(hot_accesses_.begin(), hot_accesses_.end());
    return schedule;
  }

  void watch() {
    step(fmt::format("{} instructions are watched", accesses_.size()));
    Schedule schedule;
    if (!watch(schedule)) return;
    Portfolio portfolio(profile_of(seen_.front().trace()), {}, {}, options_.seed);
    // A walk at random meets many orders that differ a little, the other samplers few that differ
    // much.
    while (
        seen_.size() < options_.most_runs &&
        watch(seen_.size() % 2 == 0 ? portfolio.next() : portfolio.next_by(Sampler::random_walk)))
      continue;
  }

  // More accesses are looked for as long as that is quick.
  bool watch(Schedule schedule) {
    schedule.watch_races = true;
    schedule.find_accesses = longest_ < std::chrono::seconds(1);
    auto run = runs_.run(with_accesses(schedule));
    if (!run) return false;
    longest_ = std::max(longest_, run->result.process.duration);
    add_accesses(run->controlled());
    coverage_.add(run->trace());
    const ControlledRun& controlled = run->controlled();
    if (controlled.points.size() < controlled.points_in_all) ++report_.cut_runs;
    seen_.push_back(std::move(*run));
    return true;
  }

  // What one run shows to be atomic is atomic in all of them.
  void judge() {
    AtomicSites atomic_sites;
    for (const ScheduleRun& run : seen_) add_atomic_sites(run.trace(), atomic_sites);
    for (const ScheduleRun& run : seen_) {
      std::set<size_t> shown;
      for (const RacyPair& pair : find_races(run.trace(), atomic_sites))
        shown.insert(number_of(race_of(run.trace(), pair)));
      for (const size_t race : shown) ++report_.races[race].runs;
    }
  }

  // By places and variable: one line can have many instructions.
  size_t number_of(Race race) {
    const auto side = [](const Race::Access& access) {
      return access.location.empty() ? to_string(access.site) : access.location;
    };
    std::string a = side(race.first), b = side(race.second);
    if (b < a) std::swap(a, b);
    const auto [known, is_new] = numbers_.try_emplace({a, b, race.variable}, report_.races.size());
    if (is_new) report_.races.push_back(std::move(race));
    return known->second;
  }

  static Race race_of(const Trace& trace, const RacyPair& pair) {
    Race race;
    const bool writes_first = pair.first.writes || !pair.second.writes;
    race.first = access_of(trace, writes_first ? pair.first : pair.second);
    race.second = access_of(trace, writes_first ? pair.second : pair.first);
    const SharedVariable* variable = variable_at(*trace.controlled, pair.first.address);
    if (variable == nullptr) variable = variable_at(*trace.controlled, pair.second.address);
    if (variable != nullptr) {
      race.variable = variable->name;
      race.type = variable->type;
    } else {
      race.region = region_of(pair.first.address);
    }
    race.images = trace.images;
    return race;
  }

  static Race::Access access_of(const Trace& trace, const RacyAccess& racy) {
    Race::Access access;
    if (const TracedThread* thread = scheduled_thread(trace, racy.thread))
      access.thread = thread->name.text;
    const TracedSite& site = trace.sites[racy.site];
    access.writes = racy.writes;
    access.size = racy.size;
    access.manner = manner_of(trace, racy);
    access.site = site.name;
    access.location = site.location;
    if (racy.stack >= trace.stacks.size()) return access;
    access.stack = trace.stacks[racy.stack];
    if (const Frame* frame = first_project_frame(access.stack))
      access.location = location_of(*frame);
    return access;
  }

  // The type of a variable is known to be a plain one, or the instruction does more than to load or
  // to store.
  static Race::Manner manner_of(const Trace& trace, const RacyAccess& racy) {
    if (racy.is_atomic) return Race::Manner::atomic;
    const SharedVariable* variable = variable_at(*trace.controlled, racy.address);
    const AccessInstruction* instruction = instruction_at(*trace.controlled, racy.site);
    const bool does_both = instruction != nullptr && instruction->reads && instruction->writes;
    const bool is_told = does_both || racy.size > granule_size || racy.address % racy.size != 0 ||
                         (variable != nullptr && !variable->type.empty());
    return is_told ? Race::Manner::plain : Race::Manner::not_told;
  }

  void finish() {
    report_.elapsed = runs_.elapsed();
    report_.runs = seen_.size();
    report_.orders = coverage_.orders();
    report_.access_sites = accesses_.size();
    for (const SiteName& access : hot_accesses_) report_.hot_accesses.push_back(to_string(access));
    report_.not_repeatable = runs_.not_repeatable();
    report_.why = runs_.why_not_controlled();
    std::ranges::stable_sort(report_.races, std::greater{}, &Race::runs);
    report_.answer = answer();
  }

  RaceReport::Answer answer() const {
    if (!report_.races.empty()) return RaceReport::Answer::found;
    if (!report_.why.empty()) return RaceReport::Answer::not_controlled;
    if (runner_.stopped()) return RaceReport::Answer::stopped;
    const bool is_cut_short = seen_.empty() && (profiles_ == 0 || !accesses_.empty());
    return is_cut_short ? RaceReport::Answer::budget_over : RaceReport::Answer::none;
  }

  const RaceOptions& options_;
  TrialRunner& runner_;
  ScheduleRuns runs_;
  RaceReport report_;
  Duration longest_{};  // of all runs so far
  uint64_t profiles_ = 0;
  std::set<SiteName> accesses_, hot_accesses_;
  std::vector<ScheduleRun> seen_;
  ScheduleCoverage coverage_;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> numbers_;
};

}  // namespace

Result<RaceReport> look_for_races(TrialRunner& runner, const RaceOptions& options) {
  return RaceSearch(runner, options)();
}

}  // namespace unflake
