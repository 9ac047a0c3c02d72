#include "search/repair/sampled_schedules.h"

#include <algorithm>
#include <set>

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Purpose = TrialRunner::Purpose;

constexpr Duration shorter_stalls[] = {10ms, 100ms};

}  // namespace

SampledSchedules::SampledSchedules(TrialRunner& runner, Plan plan, const Options& options)
    : options_(options),
      runs_(runner, std::move(plan),
            ScheduleLimits{options.budget, options.timeout, options.at_once}) {}

void SampledSchedules::add_level(const ScheduleProfile& profile, const ScheduleLevel& level) {
  levels_.emplace_back(profile, level, std::vector<Sampler>{},
                       options_.seed * 1000 + levels_.size());
}

// Lateness matters only where time passes.
bool SampledSchedules::add_levels() {
  const auto run = runs_.run({}, Purpose::profile);
  if (!run) return false;
  const ScheduleProfile profile = profile_of(run->trace());
  undisturbed_ = run->controlled().virtual_time;
  add_level(profile, {});
  if (profile.has_deadlines) {
    std::set<Duration> stalls{options_.latest};
    for (const Duration stall : shorter_stalls)
      if (stall < options_.latest) stalls.insert(stall);
    for (const Duration stall : stalls) add_level(profile, {{}, stall});
  }
  if (options_.accesses) add_access_levels();
  return true;
}

void SampledSchedules::add_access_levels() {
  Schedule look;
  look.find_accesses = true;
  const auto found = runs_.run(look);
  if (!found || found->controlled().shared_accesses.empty()) return;
  ScheduleLevel level{found->controlled().shared_accesses, {}, found->controlled().hot_accesses};
  Schedule plain;
  plain.accesses = level.accesses;
  plain.hot_accesses = level.hot_accesses;
  const auto run = runs_.run(plain, Purpose::profile);
  if (!run) return;
  const ScheduleProfile profile = profile_of(run->trace());
  add_level(profile, level);
  level.stall = std::min<Duration>(options_.latest, 100ms);
  if (profile.has_deadlines) add_level(profile, level);
}

bool SampledSchedules::is_within_bound(const ScheduleRun& run) const {
  return run.controlled().virtual_time <= undisturbed_ + options_.latest;
}

void SampledSchedules::operator()(const Take& take) {
  if (!add_levels()) return;
  int started = 0;
  runs_.run_each(
      [&]() -> std::optional<Schedule> {
        if (started >= options_.most) return std::nullopt;
        return levels_[static_cast<size_t>(started++) % levels_.size()].next();
      },
      [&](const ScheduleRun& run) {
        ++made_;
        if (!run.failed() || is_within_bound(run)) return !take(run.result);
        ++too_late_;
        return true;
      });
}

}  // namespace unflake
