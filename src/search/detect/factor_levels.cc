#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "search/detect/factor_search.h"

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

}  // namespace unflake
