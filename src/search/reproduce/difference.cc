#include "search/reproduce/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "trace/happens_before.h"
#include "trace/names.h"

namespace unflake {
namespace {

constexpr size_t most_moments = 400;  // that are compared, the nearest to the failure
constexpr uint64_t most_visits = 16;  // of one place
constexpr size_t most_members = 8;    // of a class, whose moments count one by one, too
constexpr double worth_a_look = 0.05;
constexpr Duration longest_hold = std::chrono::seconds(5);

bool is_class(const std::string& thread) {
  return thread.ends_with("#*");
}

std::string class_name(const std::string& thread) {
  return thread_class_of(thread) + "#*";
}

struct RunMoments {
  std::map<OrderedMoment, Duration> at;
  Duration failure{};  // the end, where nothing says when it was
  std::string failing_thread, failing_class;
  bool failed = false;
};

// Of each thread, how many of its name were there before it: in other processes.
std::vector<size_t> processes_of(const Trace& trace) {
  std::map<std::string, size_t> seen;
  std::vector<size_t> processes;
  for (const TracedThread& thread : trace.threads) processes.push_back(seen[thread.name.text]++);
  return processes;
}

// All moments of one run.
class MomentReader {
 public:
  explicit MomentReader(const SeenRun& run)
      : trace_(*run.trace), processes_(processes_of(*run.trace)) {
    found_.failed = run.failed;
    find_failure();
    for (const TracedThread& thread : trace_.threads)
      members_[class_name(thread.name.text)].insert(thread.name.text);
  }

  RunMoments operator()() {
    add_of_threads();
    add_of_classes();
    return std::move(found_);
  }

 private:
  void find_failure() {
    found_.failure = end_of(trace_);
    const TracedFailure* failure = main_failure(trace_);
    if (failure == nullptr) return;
    found_.failure = failure->at;
    if (failure->thread >= trace_.threads.size()) return;
    found_.failing_thread = trace_.threads[failure->thread].name.text;
    found_.failing_class = class_name(found_.failing_thread);
  }

  bool is_known(const TracedCall& call) const {
    return !call.is_intervention && call.thread < trace_.threads.size() &&
           call.site < trace_.sites.size();
  }

  void add(const std::string& thread, size_t process, const TracedCall& call) {
    const TracedSite& site = trace_.sites[call.site];
    uint64_t& visits = visits_[{thread, process, call.site}];
    if (++visits > most_visits) return;
    OrderedMoment moment{thread, process, site.name, visits, false};
    found_.at[moment] = call.enter;
    if (!may_wait(site) || lets_one_in(site) || call.unfinished) return;
    moment.is_end = true;
    found_.at[moment] = call.exit;
  }

  void add_of_threads() {
    for (const TracedCall& call : trace_.calls) {
      if (!is_known(call)) continue;
      const std::string& name = trace_.threads[call.thread].name.text;
      if (members_[class_name(name)].size() <= most_members)
        add(name, processes_[call.thread], call);
    }
  }

  // Counted over all of them, in the order of time.
  void add_of_classes() {
    std::vector<const TracedCall*> calls;
    for (const TracedCall& call : trace_.calls)
      if (is_known(call) && members_[class_name(trace_.threads[call.thread].name.text)].size() > 1)
        calls.push_back(&call);
    std::ranges::stable_sort(calls, {}, &TracedCall::enter);
    for (const TracedCall* call : calls)
      add(class_name(trace_.threads[call->thread].name.text), 0, *call);
  }

  const Trace& trace_;
  const std::vector<size_t> processes_;  // of threads
  RunMoments found_;
  std::map<std::string, std::set<std::string>> members_;  // of classes
  std::map<std::tuple<std::string, size_t, uint32_t>, uint64_t> visits_;
};

class DifferenceSearch {
 public:
  explicit DifferenceSearch(const std::vector<SeenRun>& runs) {
    for (const SeenRun& run : runs) {
      if (run.trace == nullptr) continue;
      runs_.push_back(MomentReader(run)());
      ++(run.failed ? failing_ : passing_);
    }
  }

  std::vector<OrderDifference> operator()() {
    if (failing_ == 0 || passing_ == 0) return {};
    choose_moments();
    for (size_t first = 0; first < moments_.size(); ++first)
      for (size_t then = 0; then < moments_.size(); ++then) compare(first, then);
    for (OrderDifference& order : found_)
      order.p_of_all = std::min(1.0, order.p * static_cast<double>(compared_));
    rank();
    return std::move(found_);
  }

 private:
  // How long before the failure it comes on average, in the runs that fail.
  Duration distance_of(const OrderedMoment& moment) const {
    Duration sum{};
    int seen = 0;
    for (const RunMoments& run : runs_) {
      const auto at = run.at.find(moment);
      if (!run.failed || at == run.at.end()) continue;
      sum += std::chrono::abs(run.failure - at->second);
      ++seen;
    }
    return seen == 0 ? Duration::max() : sum / seen;
  }

  void choose_moments() {
    std::set<OrderedMoment> all;
    for (const RunMoments& run : runs_)
      for (const auto& [moment, at] : run.at) all.insert(moment);
    std::vector<std::pair<Duration, OrderedMoment>> by_distance;
    for (const OrderedMoment& moment : all) by_distance.emplace_back(distance_of(moment), moment);
    std::ranges::stable_sort(by_distance, {}, [](const auto& one) { return one.first; });
    if (by_distance.size() > most_moments) by_distance.resize(most_moments);
    for (auto& [distance, moment] : by_distance) {
      std::vector<std::optional<Duration>> times;
      for (const RunMoments& run : runs_) {
        const auto at = run.at.find(moment);
        times.push_back(at == run.at.end() ? std::nullopt : std::optional(at->second));
      }
      moments_.push_back(std::move(moment));
      times_.push_back(std::move(times));
    }
  }

  static bool may_be_one_thread(const OrderedMoment& one, const OrderedMoment& other) {
    if (one.thread == other.thread)
      return is_class(one.thread) ? one.site == other.site : one.process == other.process;
    return (is_class(one.thread) || is_class(other.thread)) &&
           class_name(one.thread) == class_name(other.thread);
  }

  // What comes after the failure is its consequence. The one that should have come before may be
  // missing for the same reason.
  bool holds(size_t run, size_t first, size_t then) const {
    const auto &one = times_[first][run], &two = times_[then][run];
    return one && *one <= runs_[run].failure && (!two || *one < *two);
  }

  void compare(size_t first, size_t then) {
    if (first == then || may_be_one_thread(moments_[first], moments_[then])) return;
    ++compared_;
    Count failing, passing;
    for (size_t run = 0; run < runs_.size(); ++run)
      (runs_[run].failed ? failing : passing).add(holds(run, first, then));
    if (failing.hits * passing.runs <= passing.hits * failing.runs) return;
    const double p = fisher_more_often(failing, passing);
    if (p > worth_a_look) return;
    OrderDifference order{moments_[first], moments_[then], failing, passing, p};
    describe(order, first, then);
    found_.push_back(std::move(order));
  }

  void describe(OrderDifference& order, size_t first, size_t then) const {
    Duration sum{};
    int seen = 0;
    for (size_t run = 0; run < runs_.size(); ++run) {
      if (!runs_[run].failed || !holds(run, first, then)) continue;
      const Duration later = std::max(*times_[first][run], times_[then][run].value_or(Duration{}));
      sum += std::chrono::abs(runs_[run].failure - later);
      ++seen;
      for (const OrderedMoment* moment : {&order.first, &order.then})
        if (moment->thread == runs_[run].failing_thread ||
            moment->thread == runs_[run].failing_class)
          order.with_failing_thread = true;
    }
    if (seen > 0) order.to_failure = sum / seen;
  }

  void rank() {
    std::ranges::stable_sort(found_, {}, [](const OrderDifference& order) {
      return std::tuple(order.p, !order.with_failing_thread, order.to_failure);
    });
    using Place = std::tuple<std::string, size_t, SiteName>;
    const auto place_of = [](const OrderedMoment& moment) {
      return Place(moment.thread, moment.process, moment.site);
    };
    std::set<std::pair<Place, Place>> known;
    std::erase_if(found_, [&](const OrderDifference& order) {
      return !known.emplace(place_of(order.first), place_of(order.then)).second;
    });
  }

  std::vector<RunMoments> runs_;
  int failing_ = 0, passing_ = 0;
  std::vector<OrderedMoment> moments_;
  std::vector<std::vector<std::optional<Duration>>> times_;  // of a moment in each run
  size_t compared_ = 0;
  std::vector<OrderDifference> found_;
};

}  // namespace

std::string to_string(const OrderedMoment& moment) {
  return fmt::format("{} {} {}{}", moment.thread, moment.is_end ? "leaves" : "comes to",
                     to_string(moment.site),
                     moment.nth > 1 ? fmt::format(" at visit {}", moment.nth) : "");
}

std::vector<OrderDifference> find_order_differences(const std::vector<SeenRun>& runs) {
  return DifferenceSearch(runs)();
}

namespace {

const TracedThread* thread_like(const Trace& trace, const std::string& name) {
  const auto found = std::ranges::find_if(trace.threads, [&](const TracedThread& thread) {
    const std::string& own = thread.name.text;
    return own == name || (is_class(name) && class_name(own) == name && own != "main");
  });
  return found == trace.threads.end() ? nullptr : &*found;
}

std::optional<Intervention> at_moment(const OrderedMoment& moment,
                                      const std::vector<SeenRun>& runs) {
  for (const SeenRun& run : runs) {
    const TracedThread* thread = run.trace ? thread_like(*run.trace, moment.thread) : nullptr;
    if (thread == nullptr) continue;
    Intervention what;
    what.site = moment.site;
    what.threads =
        is_class(moment.thread) ? Intervention::Threads::in_class : Intervention::Threads::named;
    what.thread = thread->name;
    if (is_class(moment.thread)) {
      what.thread.text = moment.thread;
      what.thread.role.clear();
    }
    what.executable = executable_of(*run.trace, *thread);
    if (moment.is_end) what.position = Intervention::Position::after;
    return what;
  }
  return std::nullopt;
}

bool waits_itself(const SiteName& site) {
  const auto* api = find_timing_api(site.api);
  return api != nullptr && (api->traits & protocol::api_wait) != 0;
}

}  // namespace

namespace {

// The call of a trace, by a thread or by any of its class.
const TracedCall* call_of(const Trace& trace, const OrderedMoment& moment) {
  const std::vector<size_t> processes = processes_of(trace);
  std::vector<const TracedCall*> calls;
  for (const TracedCall& call : trace.calls) {
    if (call.is_intervention || call.thread >= trace.threads.size() ||
        call.site >= trace.sites.size() || trace.sites[call.site].name != moment.site)
      continue;
    const std::string& name = trace.threads[call.thread].name.text;
    const bool is_it = name == moment.thread && processes[call.thread] == moment.process;
    if (is_it || (is_class(moment.thread) && class_name(name) == moment.thread))
      calls.push_back(&call);
  }
  std::ranges::stable_sort(calls, {}, &TracedCall::enter);
  return moment.nth <= calls.size() ? calls[moment.nth - 1] : nullptr;
}

// What the thread had last done when it went on to this call.
const TracedCall* call_before(const Trace& trace, const TracedCall& call) {
  for (const TracedCall* other = &call; other-- != trace.calls.data();) {
    if (other->thread != call.thread) return nullptr;
    if (!other->is_intervention) return other;
  }
  return nullptr;
}

std::optional<Intervention> at_start_of(const Trace& trace, uint32_t thread) {
  const size_t creation = find_creations(trace)[thread];
  if (creation == no_call) return std::nullopt;
  Intervention what;
  what.site = trace.sites[trace.calls[creation].site].name;
  what.position = Intervention::Position::start;
  what.threads = Intervention::Threads::named;
  what.thread = trace.threads[thread].name;
  what.executable = executable_of(trace, trace.threads[thread]);
  return what;
}

std::optional<Intervention> at_step_before(const OrderedMoment& moment,
                                           const std::vector<SeenRun>& runs) {
  if (is_class(moment.thread) || moment.is_end) return std::nullopt;
  for (const SeenRun& run : runs) {
    const TracedCall* call = run.trace ? call_of(*run.trace, moment) : nullptr;
    if (call == nullptr) continue;
    const TracedCall* before = call_before(*run.trace, *call);
    if (before == nullptr) return at_start_of(*run.trace, call->thread);
    uint64_t nth = 0;
    for (const TracedCall& other : run.trace->calls)
      if (other.thread == call->thread && other.site == before->site && !other.is_intervention &&
          &other <= before)
        ++nth;
    auto what = at_moment(
        {moment.thread, moment.process, run.trace->sites[before->site].name, nth, true}, runs);
    if (what) what->nth = nth;
    return what;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Intervention> as_interventions(const OrderDifference& order,
                                           const std::vector<SeenRun>& runs, HoldAt where) {
  auto passed = at_moment(order.first, runs);
  auto waits =
      where == HoldAt::call ? at_moment(order.then, runs) : at_step_before(order.then, runs);
  if (!passed || !waits) return {};
  passed->action = Intervention::Action::watch;
  // It is over before the other one goes on; whoever begins to wait there need not be through.
  if (!waits_itself(order.first.site)) passed->position = Intervention::Position::after;
  if (where == HoldAt::call) waits->nth = order.then.nth;
  waits->action = Intervention::Action::hold;
  waits->duration = longest_hold;
  if (waits->position != Intervention::Position::start)
    waits->visits = Intervention::Visits::only_nth;
  waits->until = 0;
  waits->count = order.first.nth;
  return {std::move(*passed), std::move(*waits)};
}

}  // namespace unflake
