#include "search/detect/factor_search.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "search/trial/trial_runner.h"
#include "stats/rates.h"

namespace unflake {
namespace {

using namespace std::chrono;
using Levels = std::vector<FactorLevel>;

constexpr int seeds = 8;
constexpr const char* european_summer_time = "CET-1CEST,M3.5.0,M10.5.0/3";

// Adds a level whose conditions a function sets.
template <class Set>
void add(Levels& levels, const char* factor, Set set) {
  FactorLevel level;
  level.factor = factor;
  set(level.conditions);
  levels.push_back(std::move(level));
}

std::string clock_text(sys_days day, seconds of_day) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z",
                     fmt::gmtime(system_clock::to_time_t(system_clock::time_point(day + of_day))));
}

bool is_ordinary(const year_month_day& date) {
  const unsigned day = static_cast<unsigned>(date.day());
  return weekday(sys_days(date)) == Wednesday && day > 8 && day < 22;
}

bool is_before_30_days(const std::chrono::month& month) {
  return month == March || month == May || month == August || month == October;
}

// The first day from then on that is as wanted.
template <class Wanted>
sys_days next_day(sys_days from, Wanted is_wanted) {
  sys_days day = from;
  for (int i = 0; i < 9 * 366 && !is_wanted(year_month_day(day)); ++i) day += days(1);
  return day;
}

void add_clocks(Levels& levels, system_clock::time_point now) {
  const sys_days today = floor<days>(now) + days(1);
  const auto at = [&](sys_days day, seconds of_day, bool is_control = false,
                      const char* zone = "") {
    add(levels, "clock", [&](Conditions& c) {
      c.clock = clock_text(day, of_day);
      c.time_zone = zone;
    });
    levels.back().is_control = is_control;
  };
  constexpr seconds noon = hours(12), midnight = hours(24) - seconds(1);
  const sys_days ordinary = next_day(today, is_ordinary);
  at(ordinary, noon, true);
  at(next_day(today, [](auto d) { return d.month() == February && d.day() == day(29); }), noon);
  // The next month has fewer days, or far fewer.
  at(next_day(today, [](auto d) { return d.day() == day(31) && is_before_30_days(d.month()); }),
     noon);
  at(next_day(today, [](auto d) { return d.month() == January && d.day() == day(31); }), noon);
  at(next_day(today, [](auto d) { return d.month() == December && d.day() == day(31); }), midnight);
  at(next_day(today, [](auto d) { return d.month() == January && d.day() == day(1); }), noon);
  at(next_day(today, [](auto d) { return weekday(sys_days(d)) == Saturday; }), noon);
  at(ordinary, midnight);
  at(ordinary, minutes(20));
  // One hour is left out, and one comes twice.
  at(sys_days(year_month_day(today).year() / March / Sunday[std::chrono::last]),
     hours(0) + minutes(59) + seconds(59), false, european_summer_time);
  at(sys_days(year_month_day(today).year() / October / Sunday[std::chrono::last]),
     hours(0) + minutes(30), false, european_summer_time);
  at(sys_days(year(2038) / January / 19), hours(3) + minutes(14) + seconds(7));
}

void add_locales(FactorLevels& all, const std::vector<std::string>& installed) {
  for (const std::string& name : installed)
    add(all.levels, "locale", [&](Conditions& c) { c.locale = name; });
  const bool has_comma =
      std::ranges::any_of(installed, [](const auto& name) { return name.starts_with("de_"); });
  if (!has_comma)
    all.not_tried.push_back({"locale", "none with a decimal comma is installed (de_DE.UTF-8)"});
}

void add_time_zones(Levels& levels) {
  for (const char* zone : {"UTC0", "<+14>-14", "<-12>12", "NST3:30NDT,M3.2.0,M11.1.0"})
    add(levels, "time zone", [&](Conditions& c) { c.time_zone = zone; });
}

void add_resources(Levels& levels, int cores) {
  add(levels, "number of cores", [](Conditions& c) { c.one_core = true; });
  add(levels, "number of cores", [](Conditions& c) {
    c.one_core = true;
    c.cores_told = 1;
  });
  add(levels, "CPU load", [&](Conditions& c) { c.competitors = 2 * std::max(1, cores); });
  add(levels, "CPU load", [](Conditions& c) { c.cpu_share = 0.2; });
  add(levels, "free disk", [](Conditions& c) { c.free_disk_mib = 16; });
  add(levels, "open files", [](Conditions& c) { c.open_files = 256; });
}

}  // namespace

std::vector<std::string> wanted_locales() {
  return {"C",           "C.UTF-8",     "en_US.UTF-8", "de_DE.UTF-8",
          "tr_TR.UTF-8", "fr_FR.UTF-8", "ja_JP.UTF-8"};
}

FactorLevels factor_levels(const FactorFacts& facts) {
  FactorLevels all;
  Levels& levels = all.levels;
  for (const char* layout : {"fixed", "low"})
    add(levels, "address layout", [&](Conditions& c) { c.addresses = layout; });
  for (const int bytes : {40, 3000})
    add(levels, "environment size", [&](Conditions& c) { c.environment_bytes = bytes; });
  add_locales(all, facts.locales);
  add_time_zones(levels);
  add_clocks(levels, facts.now);
  for (const char* mask : {"077", "000"})
    add(levels, "umask", [&](Conditions& c) { c.umask = mask; });
  add_resources(levels, facts.cores);
  add(levels, "temporary folder", [](Conditions& c) { c.other_temporary = true; });
  add(levels, "working folder", [](Conditions& c) { c.other_folder = true; });
  add(levels, "parallel neighbour", [](Conditions& c) { c.twins = 1; });
  for (int seed = 1; seed <= seeds; ++seed) {
    add(levels, "random seed", [&](Conditions& c) { c.random_seed = seed; });
    levels.back().is_seed = true;
  }
  for (int seed = 1; seed <= 4; ++seed) {
    add(levels, "hash seed", [&](Conditions& c) { c.hash_seed = seed; });
    levels.back().is_seed = true;
  }
  add(levels, "network", [](Conditions& c) { c.no_network = true; });
  for (const int byte : {165, 255})
    add(levels, "uninitialised memory", [&](Conditions& c) { c.memory_fill = byte; });
  return all;
}

namespace {

using Purpose = TrialEnded::Purpose;

constexpr int base_runs = 5;
constexpr int mixed_base_runs = 20;  // where it fails in some
constexpr int screening_runs = 3;    // where it always ends alike
constexpr int mixed_screening_runs = 8;
constexpr size_t most_seeds = 24;    // until one ends otherwise
constexpr double may_differ = 0.05;  // before what was tried is corrected for
constexpr double least_share = 0.2;  // of runs with the other outcome, once it is confirmed
constexpr Duration least_timeout = std::chrono::seconds(5);

// A level that was screened.
struct Screened {
  const FactorLevel* level = nullptr;
  Count failures;
};

class FactorSearch {
 public:
  FactorSearch(TrialRunner& runner, std::shared_ptr<const Test> test, const FactorLevels& levels,
               const FactorOptions& options)
      : runner_(runner), test_(std::move(test)), levels_(levels), options_(options) {}

  FactorReport operator()() {
    report_.not_tried = levels_.not_tried;
    runner_.teller().begin("factors", "one factor of the surroundings at a time");
    if (measure_base()) screen_all();
    std::ranges::stable_sort(report_.findings, {}, [](const FactorFinding& finding) {
      return fisher_differs(finding.with, finding.without);
    });
    report_.runs = runner_.runs();
    report_.is_complete = !runner_.has_ended() && !runner_.budget().is_spent();
    return std::move(report_);
  }

 private:
  bool may_go_on() const { return !runner_.has_ended() && !runner_.budget().is_spent(); }

  std::optional<bool> failed_under(const Conditions& conditions, Purpose purpose,
                                   const std::string& why) {
    if (!may_go_on()) return std::nullopt;
    const auto seen = runner_.run({{}, conditions, why}, purpose, {timeout_, runner_.left()});
    if (!seen) return std::nullopt;
    if (!has_started(seen->result)) {
      refused_ = seen->result.process.error;
      return std::nullopt;
    }
    const Outcome& outcome = seen->result.outcome;
    if (outcome.kind == OutcomeKind::skipped) return std::nullopt;
    if (outcome.failed()) last_failure_ = outcome;
    longest_ = std::max(longest_, outcome.duration);
    return outcome.failed();
  }

  bool measure_base() {
    int wanted = base_runs;
    timeout_ = options_.timeout;
    while (base_.runs < wanted) {
      const auto failed = failed_under({}, Purpose::baseline, "as it is");
      if (!failed) return false;
      base_.add(*failed);
      if (base_.hits > 0 && base_.misses() > 0) wanted = mixed_base_runs;
    }
    timeout_ = std::min(options_.timeout, 10 * longest_ + least_timeout);
    return true;
  }

  bool is_mixed() const { return base_.hits > 0 && base_.misses() > 0; }

  bool is_wanted(const FactorLevel& level) const {
    return options_.only.empty() ||
           std::ranges::find(options_.only, level.factor) != options_.only.end();
  }

  void screen_all() {
    std::map<std::string, bool> settled;  // factors of which no more levels are looked at
    std::map<std::string, std::vector<Screened>> by_seed;
    for (const FactorLevel& level : levels_.levels) {
      if (!is_wanted(level) || settled[level.factor] || !may_go_on()) continue;
      const Screened screened = screen(level);
      if (refused_) {
        report_.not_tried.push_back({level.factor, *std::exchange(refused_, std::nullopt)});
        settled[level.factor] = true;
      } else if (level.is_seed) {
        by_seed[level.factor].push_back(screened);
      } else if (differs(screened.failures, base_)) {
        settled[level.factor] = level.is_control
                                    ? tell_control(level)
                                    : confirm(level, {}, screened.failures.rate() > base_.rate());
      }
    }
    for (auto& [factor, all] : by_seed) {
      add_seeds(all);
      compare_seeds(all);
    }
  }

  Screened screen(const FactorLevel& level) {
    ++report_.levels;
    Screened screened{&level, {}};
    const int wanted = level.is_seed ? 2 : is_mixed() ? mixed_screening_runs : screening_runs;
    while (screened.failures.runs < wanted) {
      const auto failed = failed_under(level.conditions, Purpose::candidate, level.factor);
      if (!failed) break;
      screened.failures.add(*failed);
    }
    return screened;
  }

  // Whether it is worth more runs.
  bool differs(const Count& with, const Count& without) const {
    if (with.runs == 0) return false;
    if (!is_mixed()) return with.rate() != without.rate();
    return fisher_differs(with, without) <= may_differ;
  }

  bool tell_control(const FactorLevel& level) {
    report_.notes.push_back(fmt::format(
        "{}: the outcome changes on an ordinary day, too ({}), so that no special one was tried: "
        "what the test compares the clock with was not moved",
        level.factor, level.conditions.clock));
    return true;
  }

  // Fresh runs of both, compared as often as needed and no more.
  bool confirm(const FactorLevel& level, const Conditions& reference, bool for_failures) {
    FactorFinding finding;
    finding.test = test_;
    finding.factor = level.factor;
    finding.conditions = level.conditions;
    finding.reference = reference;
    last_failure_.reset();
    Count hits_without;
    Confirmation::Runs runs;
    runs.with_plan = [&]() -> std::optional<bool> {
      const auto failed = failed_under(level.conditions, Purpose::confirm, level.factor);
      if (!failed) return std::nullopt;
      finding.with.add(*failed);
      return *failed == for_failures;
    };
    runs.without_plan = [&](int wanted) {
      while (finding.without.runs < wanted) {
        const auto failed = failed_under(reference, Purpose::baseline, "as it is");
        if (!failed) break;
        finding.without.add(*failed);
        hits_without.add(*failed == for_failures);
      }
      return hits_without;
    };
    runs.has_ended = [&] { return runner_.has_ended(); };
    Confirmation confirmation(static_cast<int>(levels_.levels.size()),
                              static_cast<int>(report_.findings.size()), least_share);
    if (confirmation(runs) != Confirmation::Answer::holds) return false;
    take(std::move(finding));
    return true;
  }

  void take(FactorFinding finding) {
    if (last_failure_) {
      finding.signature = last_failure_->signature;
      if (!last_failure_->failures.empty()) finding.failure = last_failure_->failures.front();
    }
    report_.findings.push_back(std::move(finding));
  }

  // A few seeds may all happen to end alike, where the test ends otherwise now and then.
  void add_seeds(std::vector<Screened>& all) {
    const auto is_like_first = [&](const Screened& one) {
      const double rate = one.failures.rate();
      return one.failures.runs > 0 && (rate == 0 || rate == 1) && rate == all[0].failures.rate();
    };
    while (is_mixed() && all.size() < most_seeds && std::ranges::all_of(all, is_like_first)) {
      FactorLevel& next = more_seeds_.emplace_back(*all.back().level);
      if (next.conditions.hash_seed > 0) ++next.conditions.hash_seed;
      if (next.conditions.random_seed > 0) ++next.conditions.random_seed;
      all.push_back(screen(next));
      if (all.back().failures.runs == 0) return;
    }
  }

  // A seed decides when some always fail and others never do.
  void compare_seeds(const std::vector<Screened>& all) {
    const auto always = [](const Screened& one) {
      return one.failures.runs > 0 && one.failures.misses() == 0;
    };
    const auto never = [](const Screened& one) {
      return one.failures.runs > 0 && one.failures.hits == 0;
    };
    const auto failing = std::ranges::find_if(all, always);
    const auto passing = std::ranges::find_if(all, never);
    if (failing == all.end() || passing == all.end()) return;
    const auto clear =
        std::ranges::count_if(all, [&](const Screened& one) { return always(one) || never(one); });
    if (static_cast<size_t>(clear) == all.size())
      confirm(*failing->level, passing->level->conditions, true);
  }

  TrialRunner& runner_;
  const std::shared_ptr<const Test> test_;
  const FactorLevels& levels_;
  const FactorOptions& options_;
  Count base_;
  Duration timeout_{}, longest_{};
  std::optional<Outcome> last_failure_;
  std::optional<std::string> refused_;
  std::deque<FactorLevel> more_seeds_;
  FactorReport report_;
};

}  // namespace

FactorReport look_for_factors(TrialRunner& runner, std::shared_ptr<const Test> test,
                              const FactorLevels& levels, const FactorOptions& options) {
  return FactorSearch(runner, std::move(test), levels, options)();
}

}  // namespace unflake
