#include "search/balance/balance_search.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "stats/distribution.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr int least_failing = 3;
constexpr int least_passing = 10;
constexpr size_t most_calls = 5000;  // of a run that is looked at
constexpr int most_visits = 8;       // of the wait in one run
constexpr int models = 3;            // passing runs whose calls are candidates
constexpr double most_growth = 1.25;
constexpr double most_errors = 0.03;  // of runs that a candidate explains wrongly

// A moment of a thread that is the same in every run: begin or end of the nth call at a site, or,
// without a site, the end of the thread.
struct MomentName {
  std::string thread;
  std::string site;
  int nth = 0;
  bool is_end = false;
  auto operator<=>(const MomentName&) const = default;
};

struct WaitName {
  std::string thread;
  int nth = 0;
  auto operator<=>(const WaitName&) const = default;
};

// A wait is over later than it asked for, and so late counts as early for what it waits for.
struct Waited {
  Duration from{}, to{}, asked{};
  Duration overshoot() const { return std::max(Duration::zero(), to - from - asked); }
};

// One run as this question sees it.
struct Timed {
  std::map<MomentName, Duration> moments;
  std::map<WaitName, Waited> waits;
  bool failed = false;
};

const std::string* thread_of(const Trace& trace, uint32_t thread) {
  return thread < trace.threads.size() ? &trace.threads[thread].name.text : nullptr;
}

Duration asked_in(const KeptRun& run, size_t number, const TimeValue& value, int64_t ns) {
  if (value.most <= Duration::zero()) return Duration::zero();
  const double factor =
      static_cast<double>(run.setting[number].count()) / static_cast<double>(value.most.count());
  return Duration(static_cast<int64_t>(factor * static_cast<double>(ns) / 1000));
}

Timed timed(const KeptRun& run, const TimeValue& value, size_t number) {
  Timed result;
  result.failed = run.failed;
  const std::string wait_site = to_string(value.site);
  std::vector<std::string> names;
  for (const TracedSite& site : run.trace->sites) names.push_back(to_string(site.name));
  std::map<std::pair<uint32_t, uint32_t>, int> visits;
  for (const TracedCall& call : run.trace->calls) {
    const std::string* thread = thread_of(*run.trace, call.thread);
    if (!thread || call.site >= names.size() || call.is_intervention) continue;
    const int nth = ++visits[{call.thread, call.site}];
    const std::string& site = names[call.site];
    result.moments.emplace(MomentName{*thread, site, nth, false}, call.enter);
    if (call.unfinished) continue;
    result.moments.emplace(MomentName{*thread, site, nth, true}, call.exit);
    if (site != wait_site || nth > most_visits) continue;
    const Duration asked = asked_in(run, number, value, call.value);
    // A timer is set at once, and is over when it goes off.
    const Duration over = value.is_timer() ? call.enter + asked : call.exit;
    result.waits.emplace(WaitName{*thread, nth}, Waited{call.enter, over, asked});
  }
  for (const TracedThread& thread : run.trace->threads)
    if (thread.ended > Duration::zero())
      result.moments.emplace(MomentName{thread.name.text, "", 1, true}, thread.ended);
  return result;
}

// How well "it came before the wait was over" tells passing from failing runs.
struct AwaitedMoment {
  MomentName moment;
  WaitName wait;
  int passing = 0, failing = 0, errors = 0;
  std::vector<double> needs_ms;
  std::vector<Duration> asked;  // in the same runs

  double median() const { return spread_of(needs_ms).median; }
  bool is_believable() const {
    return passing >= least_passing && failing >= least_failing &&
           errors <= most_errors * (passing + failing + errors);
  }
};

AwaitedMoment rated(const MomentName& moment, const WaitName& wait,
                    const std::vector<Timed>& runs) {
  AwaitedMoment rated{moment, wait, 0, 0, 0, {}, {}};
  for (const Timed& run : runs) {
    const auto waited = run.waits.find(wait);
    if (waited == run.waits.end()) continue;
    const auto came = run.moments.find(moment);
    const bool in_time = came != run.moments.end() && came->second <= waited->second.to;
    if (in_time == run.failed)
      ++rated.errors;
    else
      ++(run.failed ? rated.failing : rated.passing);
    if (came == run.moments.end()) continue;
    rated.asked.push_back(waited->second.asked);
    rated.needs_ms.push_back(
        std::max(0.0, to_ms(came->second - waited->second.from - waited->second.overshoot())));
  }
  return rated;
}

// Fewest errors; of equals the latest, because what the test needs may come after the call that is
// seen before it, and a wait that is too long is not a failure.
bool is_better(const AwaitedMoment& a, const AwaitedMoment& b) {
  return std::tuple(b.errors, a.median()) > std::tuple(a.errors, b.median());
}

bool grows_beyond(Duration edge, const AwaitedMoment& candidate) {
  std::vector<double> with_less, with_more;
  for (size_t i = 0; i < candidate.asked.size(); ++i)
    (candidate.asked[i] <= edge ? with_less : with_more).push_back(candidate.needs_ms[i]);
  return spread_of(with_more).median > most_growth * spread_of(with_less).median + 1;
}

// What takes longer when there is more time does not say how much is needed. Most runs are near the
// shortest time, and only a few have what the test asks for by itself.
bool depends_on_asked(const AwaitedMoment& candidate) {
  std::vector<Duration> order = candidate.asked;
  std::ranges::sort(order);
  return grows_beyond(order[order.size() / 2], candidate) ||
         grows_beyond(order.back() / 2, candidate);
}

std::optional<AwaitedMoment> best_candidate(const std::vector<Timed>& runs) {
  std::optional<AwaitedMoment> best;
  std::map<std::pair<WaitName, MomentName>, bool> seen;
  int looked = 0;
  for (const Timed& model : runs) {
    if (model.failed || ++looked > models) continue;
    for (const auto& [wait, span] : model.waits)
      for (const auto& [moment, at] : model.moments) {
        if (moment.thread == wait.thread || at < span.from || at > span.to) continue;
        if (!seen.emplace(std::pair(wait, moment), true).second) continue;
        AwaitedMoment candidate = rated(moment, wait, runs);
        if (candidate.is_believable() && (!best || is_better(candidate, *best)))
          best = std::move(candidate);
      }
  }
  return best;
}

Needed described(std::vector<double> needs_ms, double tolerance) {
  Needed needed;
  const Spread spread = spread_of(needs_ms);
  needed.times = static_cast<int>(spread.count);
  needed.median = from_ms(spread.median);
  needed.longest = from_ms(spread.max);
  needed.at_tolerance = from_ms(tail_quantile(std::move(needs_ms), tolerance));
  return needed;
}

// Waits that end early measure it themselves.
std::optional<Needed> needed_by_itself(const TimeValue& value, double tolerance) {
  if (value.early.size() < least_passing) return std::nullopt;
  std::vector<double> needs_ms;
  for (const Duration early : value.early) needs_ms.push_back(to_ms(early));
  return described(std::move(needs_ms), tolerance);
}

void name_call(Needed& needed, const MomentName& moment, std::span<const KeptRun> runs) {
  needed.call_thread = moment.thread;
  if (moment.site.empty()) return;
  for (const KeptRun& run : runs)
    for (const TracedSite& site : run.trace->sites)
      if (to_string(site.name) == moment.site) {
        needed.call = site.name;
        needed.call_location = site.location;
        return;
      }
}

}  // namespace

std::optional<Needed> needed_time(const TimeValue& value, size_t number,
                                  std::span<const KeptRun> runs, double tolerance) {
  if (value.use() == TimeUse::timeout) return needed_by_itself(value, tolerance);
  std::vector<Timed> seen;
  for (const KeptRun& run : runs)
    if (run.load == LoadLevel::idle && run.trace->calls.size() <= most_calls)
      seen.push_back(timed(run, value, number));
  const auto best = best_candidate(seen);
  if (!best || depends_on_asked(*best)) return std::nullopt;
  Needed needed = described(best->needs_ms, tolerance);
  name_call(needed, best->moment, runs);
  return needed;
}

}  // namespace unflake
