#include "search/repair/flakesync.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "search/reproduce/shrink.h"
#include "search/reproduce/strategy.h"
#include "trace/names.h"
#include "util/paths.h"

namespace unflake {

std::optional<LatePlaces> first_failing_delay(size_t n, const DelayLadder& ladder,
                                              const FailsWhenLate& fails) {
  LatePlaces late{std::vector<size_t>(n), ladder.first};
  std::iota(late.places.begin(), late.places.end(), size_t{0});
  for (; n > 0 && late.delay <= ladder.most; late.delay *= 2)
    if (fails(late.places, late.delay)) return late;
  return std::nullopt;
}

namespace {

std::vector<std::vector<size_t>> parts_of(const std::vector<size_t>& all, size_t parts) {
  std::vector<std::vector<size_t>> split;
  for (size_t i = 0; i < parts; ++i) {
    const auto at = [&](size_t number) {
      return all.begin() + static_cast<std::ptrdiff_t>(all.size() * number / parts);
    };
    split.emplace_back(at(i), at(i + 1));
  }
  return split;
}

}  // namespace

LatePlaces minimise_delays(LatePlaces late, const DelayLadder& ladder, const FailsWhenLate& fails) {
  for (size_t parts = 2; late.places.size() > 1;) {
    parts = std::min(parts, late.places.size());
    std::optional<LatePlaces> smaller;
    for (Duration delay = late.delay; delay <= ladder.most && !smaller; delay *= 2)
      for (const auto& part : parts_of(late.places, parts))
        if (!smaller && fails(part, delay)) smaller = LatePlaces{part, delay};
    if (smaller) {
      late = *smaller;
      parts = 2;
    } else if (parts == late.places.size()) {
      break;
    } else {
      parts *= 2;
    }
  }
  return late;
}

std::optional<size_t> last_of_failing_region(size_t n, const std::function<bool(size_t)>& fails) {
  std::optional<size_t> last;
  for (size_t i = 0; i < n; ++i) {
    if (fails(i))
      last = i;
    else if (last)
      break;
  }
  return last;
}

std::vector<CallSite> call_sites_of(const Trace& trace, const TracedStack& stack) {
  std::vector<CallSite> sites;
  const std::set<std::string> files = project_files(trace);
  const uint32_t own = trace.processes.empty() ? no_index : trace.processes.front().executable;
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source) {
      if (!is_own(frame, source) || !files.contains(source.file)) continue;
      CallSite site;
      if (frame.image != own && frame.image < trace.images.size())
        site.line.image = base_name(trace.images[frame.image].path);
      site.line.file = base_name(source.file);
      for (const TracedSite& known : trace.sites)
        if (!known.name.file.empty() && source.file.ends_with("/" + known.name.file))
          site.line.file = known.name.file;
      site.line.line = source.line;
      site.function = source.function;
      sites.push_back(std::move(site));
    }
  return sites;
}

std::optional<RootSite> find_root(const std::vector<CallSite>& sites, Duration delay,
                                  const DelayLadder& ladder,
                                  const std::function<bool(const CallSite&, Duration)>& fails) {
  std::optional<RootSite> root;
  for (const CallSite& site : sites)
    for (Duration longer = delay; longer <= ladder.most; longer *= 2) {
      if (!fails(site, longer)) continue;
      root = RootSite{site, longer};
      delay = longer;
      break;
    }
  return root;
}

std::vector<CallSite> barrier_lines(const std::vector<CallSite>& stack,
                                    const std::function<std::vector<int>(const CallSite&)>& lines) {
  std::vector<CallSite> all;
  std::set<SiteName> met;
  for (const CallSite& site : stack) {
    std::vector<int> numbers = lines(site);
    std::ranges::sort(numbers, std::greater());
    for (const int number : numbers) {
      CallSite line = site;
      line.line.line = number;
      if (number <= site.line.line && met.insert(line.line).second) all.push_back(line);
    }
  }
  return all;
}

namespace {

using End = RepairRuns::End;

constexpr int runs_for_concurrency = 10;
constexpr size_t most_stacks = 8;

class FlakeSync {
 public:
  FlakeSync(Hunt& hunt, RepairRuns& runs, const RepairOptions& options,
            const std::function<void(const EnforcedRepair&)>& found)
      : hunt_(hunt), runs_(runs), limits_(options.verification), tell_found_(found) {}

  RepairReport operator()() {
    report_.method = "flakesync";
    runs_.runner().teller().begin("flakesync",
                                  "the published search: delays everywhere, then less");
    search();
    report_.runs = runs_.runner().runs();
    report_.elapsed = runs_.runner().elapsed();
    report_.interrupted = runs_.runner().stopped();
    report_.out_of_budget = !report_.interrupted && runs_.runner().left() <= Duration{};
    return std::move(report_);
  }

 private:
  void search() {
    for (const ConcurrentFunction& function :
         find_concurrent_functions(hunt_, runs_for_concurrency))
      places_.insert(places_.end(), function.entries.begin(), function.entries.end());
    runs_.say(fmt::format("{} delay locations in functions that run side by side", places_.size()));
    const auto fails = [&](const std::vector<size_t>& numbers, Duration delay) {
      return fails_when_late(numbers, delay);
    };
    auto late = first_failing_delay(places_.size(), ladder_, fails);
    if (!late) return note("no delay at the functions that run side by side makes the test fail");
    *late = minimise_delays(*late, ladder_, fails);
    runs_.say(fmt::format("{} of them are enough, {} late each", late->places.size(),
                          format_duration(late->delay)));
    for (const RootSite& root : roots_of(*late))
      if (const auto critical = critical_in(root); critical && !is_done()) find_barrier(*critical);
  }

  void note(const std::string& text) {
    if (!runs_.is_over()) report_.notes.push_back(text);
  }
  bool is_done() const { return !report_.repairs.empty() || runs_.is_over(); }

  // What would take longer than a quarter of the time that is left is not tried.
  bool has_room(Duration delay, size_t places) {
    return delay * static_cast<int64_t>(places) <= runs_.runner().left() / 4;
  }

  Trial late_trial(const std::vector<Intervention>& late, std::string why) const {
    Trial trial = runs_.test().passing;
    trial.plan.agent = true;
    trial.plan.interventions = late;
    trial.why = std::move(why);
    return trial;
  }

  bool fails_when_late(const std::vector<size_t>& numbers, Duration delay) {
    std::vector<Place> some;
    for (const size_t number : numbers) some.push_back(places_[number]);
    if (!has_room(delay, static_cast<size_t>(most_delays_in_a_thread(some)))) return false;
    std::vector<Intervention> late;
    for (const Place& place : some) {
      late.push_back(delay_at(place, delay));
      late.back().visits = Intervention::Visits::halving;
    }
    const std::string why =
        numbers.size() == 1 ? "one place late" : fmt::format("{} places late", numbers.size());
    return runs_.most_of(late_trial(late, why)) == End::failed;
  }

  static Intervention late_line(const SiteName& line, Duration delay) {
    Intervention late;
    late.site = line;
    late.duration = delay;
    return late;
  }

  bool fails_at_line(const SiteName& line, Duration delay) {
    if (!has_room(delay, 1)) return false;
    return runs_.most_of(late_trial({late_line(line, delay)}, "late at " + to_string(line))) ==
           End::failed;
  }

  // ---- Up the stacks of the delay locations ----

  std::vector<std::vector<CallSite>> stacks_at(const Place& place) {
    Trial trial = runs_.test().passing;
    trial.plan.agent = trial.plan.calls = trial.plan.stacks = true;
    Intervention watch;
    watch.action = Intervention::Action::watch;
    watch.site = place.site;
    trial.plan.interventions = {watch};
    trial.why = "who calls " + to_string(place.site);
    const RepairRuns::Run run = runs_.run(trial, RepairRuns::Purpose::look);
    std::vector<std::vector<CallSite>> stacks;
    if (!run.ended() || !run.result.trace) return stacks;
    const Trace& trace = *run.result.trace;
    std::set<std::string> met;
    for (const TracedCall& call : trace.calls) {
      if (call.site >= trace.sites.size() || trace.sites[call.site].name != place.site) continue;
      if (call.stack >= trace.stacks.size() || stacks.size() >= most_stacks) continue;
      auto sites = call_sites_of(trace, trace.stacks[call.stack]);
      std::string text;
      for (const CallSite& site : sites) text += to_string(site.line) + " ";
      if (met.insert(text).second) stacks.push_back(std::move(sites));
    }
    return stacks;
  }

  std::vector<RootSite> roots_of(const LatePlaces& late) {
    std::vector<RootSite> roots;
    std::set<std::string> met;
    for (const size_t number : late.places)
      for (const auto& stack : stacks_at(places_[number])) {
        if (runs_.is_over()) return roots;
        auto root = find_root(
            stack, late.delay, ladder_,
            [&](const CallSite& site, Duration delay) { return fails_at_line(site.line, delay); });
        if (!root || !met.insert(root->site.function).second) continue;
        runs_.say(fmt::format("root function: {}, late at {}", root->site.function,
                              to_string(root->site.line)));
        roots.push_back(std::move(*root));
      }
    if (roots.empty()) note("no line that calls the late functions makes the test fail when late");
    return roots;
  }

  // ---- The critical point ----

  std::vector<int> lines_of_function(const CallSite& site) const {
    std::vector<int> numbers;
    for (const CodeLine& line : runs_.test().lines(site.line.image, site.line.file))
      if (line.function == site.function) numbers.push_back(line.line);
    return numbers;
  }

  static SiteName at_line(const CallSite& site, int line) {
    SiteName name = site.line;
    name.line = line;
    return name;
  }

  std::optional<CriticalPoint> critical_in(const RootSite& root) {
    const std::vector<int> lines = lines_of_function(root.site);
    const auto last = last_of_failing_region(lines.size(), [&](size_t i) {
      return !runs_.is_over() && fails_at_line(at_line(root.site, lines[i]), root.delay);
    });
    if (!last) {
      note("no line of " + root.site.function + " makes the test fail when late");
      return std::nullopt;
    }
    const SiteName line = at_line(root.site, lines[*last]);
    runs_.say("critical: " + to_string(line));
    return watched_point(root, line,
                         *last + 1 < lines.size() ? std::optional(lines[*last + 1]) : std::nullopt);
  }

  // Who executes it, and how often, by a run without delays.
  std::optional<CriticalPoint> watched_point(const RootSite& root, const SiteName& line,
                                             std::optional<int> next) {
    Trial trial = runs_.test().passing;
    trial.plan.agent = trial.plan.calls = trial.plan.stacks = true;
    Intervention watch;
    watch.action = Intervention::Action::watch;
    watch.site = line;
    trial.plan.interventions = {watch};
    trial.why = "how often it is executed";
    const RepairRuns::Run run = runs_.run(trial, RepairRuns::Purpose::look);
    if (!run.ended() || !run.result.trace) return std::nullopt;
    const Trace& trace = *run.result.trace;
    CriticalPoint point;
    point.count = 0;
    for (const TracedCall& call : trace.calls) {
      if (call.site >= trace.sites.size() || trace.sites[call.site].name != line) continue;
      const ThreadName& thread = trace.threads[call.thread].name;
      if (point.count++ == 0) point.step.thread = thread;
      if (next && point.step.thread != thread) point.step.thread = {};  // any of them
    }
    if (point.count == 0) return std::nullopt;
    point.step.site = line;
    point.step.spot = {root.site.line.file, line.line, root.site.function};
    point.late = late_line(line, root.delay);
    if (next) {
      point.next = point.step;
      point.next->site.line = point.next->spot.line = *next;
    }
    return point;
  }

  // ---- The barrier point ----

  void find_barrier(const CriticalPoint& critical) {
    Trial failing = late_trial({critical.late}, "late at the critical point");
    runs_.test().failing = failing;
    const auto seen = runs_.record(failing, nullptr, End::failed);
    if (!seen) return note("the failure did not come again with the critical point late");
    const TracedFailure* failure = main_failure(*seen->trace);
    if (failure == nullptr) return note("the failure has no stack to search for a barrier");
    const ThreadName thread = seen->trace->threads.at(failure->thread).name;
    const auto candidates =
        barrier_lines(call_sites_of(*seen->trace, failure->stack),
                      [&](const CallSite& site) { return lines_of_function(site); });
    for (const uint64_t count : {uint64_t{1}, critical.count}) {
      CriticalPoint counted = critical;
      counted.step.visit = count;  // that many executions, then the wait is over
      for (const CallSite& line : candidates) {
        if (is_done()) return;
        ThreadStep barrier;
        barrier.site = line.line;
        barrier.thread = thread;
        barrier.spot = {line.line.file, line.line.line, line.function};
        try_order({{counted, barrier}});
      }
      if (critical.count == 1) return;
    }
  }

  void try_order(const std::vector<HandOverPoints>& order) {
    Verification verify(runs_, limits_);
    runs_.runner().teller().announce("wait at " + to_string(order[0].barrier.site));
    std::string objection = verify.quick_objection(order, 1);
    if (runs_.is_over()) return;
    Verification::Verdict verdict;
    if (objection.empty()) {
      verdict = verify(order);
      objection = verdict.objection;
    }
    if (!objection.empty()) {
      report_.dropped.push_back({{hand_over_of(order[0])}, objection});
    } else if (verdict.is_complete) {
      Plan plan = runs_.test().passing.plan;
      plan.agent = true;
      plan.interventions.clear();
      EnforcedRepair repair{{hand_over_of(order[0])},
                            with_order(plan, order, std::chrono::seconds(10)),
                            verdict.runs,
                            true};
      if (tell_found_) tell_found_(repair);
      report_.repairs.push_back(std::move(repair));
    }
  }

  Hunt& hunt_;
  RepairRuns& runs_;
  const VerificationLimits limits_;
  const std::function<void(const EnforcedRepair&)>& tell_found_;
  const DelayLadder ladder_;
  std::vector<Place> places_;
  RepairReport report_;
};

}  // namespace

RepairReport find_repair_as_published(Hunt& hunt, RepairRuns& runs, const RepairOptions& options,
                                      const std::function<void(const EnforcedRepair&)>& found) {
  return FlakeSync(hunt, runs, options, found)();
}

}  // namespace unflake
