#include "search/balance/balance_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "stats/rates.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr double finest_ratio = 1.03;
constexpr Duration finest_time = 200us;
constexpr int finest_share = 1000;  // of what the test asks for now
constexpr int base_runs = 10;
constexpr int base_runs_when_flaky = 100;
constexpr double mostly = 0.5;
constexpr double just_enough = 1.01;    // of the longest need that was seen
constexpr double too_short = 0.985;     // of the usual one
constexpr double locating_share = 0.5;  // of the time that is left; the rest is for the proof

constexpr double close_enough = 1.1;  // of what FaTB has seen to fail
constexpr Duration smallest = 1ms;

}  // namespace

bool Bracket::is_closed() const {
  if (!fails) return holds == Duration::zero();
  return holds - *fails <= finest || holds <= scaled(*fails, finest_ratio);
}

Duration Bracket::next() const {
  if (!fails) return Duration::zero();
  if (*fails == Duration::zero()) return std::max<Duration>(holds / 4, finest);
  const double ratio = static_cast<double>(holds.count()) / static_cast<double>(fails->count());
  return scaled(*fails, std::sqrt(ratio));
}

BalanceBoard::BalanceBoard(BalanceRuns& made, const BalanceOptions& wanted, const TimeProfile& seen,
                           BalanceReport& written)
    : runs(made),
      options(wanted),
      profile(seen),
      report(written),
      values(seen.values),
      own(own_setting(values)),
      brackets(values.size()),
      ceiling(own),
      holding(own),
      proposed(own),
      careful(own) {
  for (size_t i = 0; i < own.size(); ++i) brackets[i] = {own[i], std::nullopt, finest(i)};
}

Duration BalanceBoard::finest(size_t value) const {
  return std::max<Duration>(finest_time, own[value] / finest_share);
}

std::string BalanceBoard::text_of(const Setting& setting) const {
  std::vector<std::string> parts;
  for (const size_t i : searched)
    if (setting[i] != own[i])
      parts.push_back(
          fmt::format("{} = {}", to_string(values[i].site),
                      setting[i] == Duration::zero() ? "none" : format_duration(setting[i])));
  return parts.empty() ? "the test's own times" : join(parts, ", ");
}

void BalanceBoard::note_needs() {
  if (!needs_are_known) return;
  for (const size_t i : searched)
    if (brackets[i].fails || values[i].use() == TimeUse::timeout)
      report.values[i].needed = needed_time(values[i], i, runs.kept(), options.tolerance);
}

void BalanceBoard::search_also(const std::vector<size_t>& members) {
  for (const size_t i : members)
    if (std::ranges::count(searched, i) == 0) searched.push_back(i);
}

// How the test does with its own times.
bool SettingCheck::measure_base(LoadLevel load) {
  const int wanted = board_.options.fatb ? board_.options.fatb_runs : base_runs;
  (void)fails_by_itself(load, wanted);
  board_.base[load] = board_.runs.counts().own(load);
  return !board_.runs.over();
}

// Whether more failures of its own show in so many runs. One that fails by itself is measured for
// longer.
bool SettingCheck::fails_by_itself(LoadLevel load, int runs) {
  const BalanceRuns::Mark before = board_.runs.mark();
  const Count seen = board_.runs.counts().own(load).failures;
  board_.runs.run(board_.own, load, runs - seen.runs);
  if (board_.runs.counts().own(load).failures.hits == seen.hits) return false;
  if (was_disturbed(board_.own, load, before)) return fails_by_itself(load, runs);
  board_.runs.run(board_.own, load,
                  base_runs_when_flaky - board_.runs.counts().own(load).failures.runs);
  board_.base[load] = board_.runs.counts().own(load);
  return true;
}

// Company must not show: not in how the test ends, and not in how long it takes.
void SettingCheck::choose_at_once() {
  const int most = board_.options.limits.at_once;
  board_.report.at_once = 1;
  if (most < 2 || board_.profile.processor_share * most > mostly) return;
  if (board_.base[LoadLevel::idle].failures.hits > 0) return;
  BalanceRuns::Mark alone_only = board_.runs.mark();
  const Spread alone = board_.runs.counts().of(board_.own, LoadLevel::idle).run_time;
  board_.runs.run_at_once(most);
  std::vector<double> together;
  const bool ran =
      board_.runs.run(board_.own, LoadLevel::idle, 3 * most, [&](const Outcome& outcome) {
        together.push_back(to_ms(outcome.duration));
        return is_bad(outcome);
      });
  const bool disturbs = spread_of(together).median > alone.upper_quartile * finest_ratio;
  if (ran && !disturbs && board_.runs.counts().own(LoadLevel::idle).failures.hits == 0) {
    board_.report.at_once = most;
    return;
  }
  board_.runs.go_back_to(std::move(alone_only));
  board_.runs.run_at_once(1);
}

SettingCheck::Verdict SettingCheck::check_once(const Setting& setting, LoadLevel load,
                                               const RateCheck::Limits& limits) {
  RateCheck check(board_.base[load], limits);
  board_.runs.run(setting, load, limits.most_runs, [&](const Outcome& outcome) {
    check.add(outcome);
    return check.verdict() != Verdict::undecided;
  });
  const bool is_worse = check.verdict() == Verdict::holds && fails_clearly_more(setting, load);
  const Verdict verdict = is_worse ? Verdict::fails : check.verdict();
  board_.runs.counts().judge(setting, load, verdict, check.refused_rate());
  return verdict;
}

// Of a test that fails by itself: an increase too small for the check may show when all is counted.
bool SettingCheck::fails_clearly_more(const Setting& setting, LoadLevel load) const {
  const auto base = board_.base.find(load);
  if (base == board_.base.end() || base->second.failures.hits == 0) return false;
  const Count seen = board_.runs.counts().failures(setting, load), own = base->second.failures;
  return fisher_more_often(seen, own) <= 1 - board_.options.confidence;
}

bool SettingCheck::mostly_fails(const Setting& setting, LoadLevel load) const {
  const Count seen = board_.runs.counts().failures(setting, load);
  return seen.hits > mostly * seen.runs;
}

// A few failures among many passes may come from runs side by side, which then say nothing.
bool SettingCheck::was_disturbed(const Setting& setting, LoadLevel load, BalanceRuns::Mark before) {
  if (mostly_fails(setting, load) || board_.report.at_once == 1 || load != LoadLevel::idle)
    return false;
  const Count seen = board_.runs.counts().failures(setting, load);
  board_.report.notes.push_back(fmt::format(
      "{} of {} runs side by side failed with {}: they do not count, and all after them "
      "were made one by one",
      seen.hits, seen.runs, board_.text_of(setting)));
  board_.runs.go_back_to(std::move(before));
  board_.runs.run_at_once(1);
  board_.report.at_once = 1;
  return true;
}

SettingCheck::Verdict SettingCheck::check(const Setting& setting, LoadLevel load,
                                          const RateCheck::Limits& limits) {
  BalanceRuns::Mark before = board_.runs.mark();
  Verdict verdict = check_once(setting, load, limits);
  if (verdict == Verdict::fails && was_disturbed(setting, load, std::move(before)))
    verdict = check_once(setting, load, limits);
  const Count seen = board_.runs.counts().failures(setting, load);
  tell(setting, load, seen);
  return verdict;
}

void SettingCheck::tell(const Setting& setting, LoadLevel load, const Count& failed) {
  board_.runs.say(fmt::format("{}{}: {} of {} failed", board_.text_of(setting),
                              load == LoadLevel::idle ? "" : ", " + std::string(to_string(load)),
                              failed.hits, failed.runs));
}

bool Lowering::has_time_to_locate() const {
  return !board_.runs.over() &&
         (board_.runs.runner().elapsed() < locate_until_ || board_.holding == board_.ceiling);
}

// Values that may depend on each other keep to their brackets, so that they go down together; and
// of one that is computed the need was seen in one of its visits only.
bool Lowering::may_jump() const {
  return board_.searched.size() == 1 && board_.values[board_.searched.front()].is_constant();
}

bool Lowering::can_jump(size_t value) const {
  return may_jump() && board_.brackets[value].fails && board_.report.values[value].needed;
}

// Either side of what was seen to be waited for.
Duration Lowering::next(size_t value) const {
  const Bracket& bracket = board_.brackets[value];
  const auto& needed = board_.report.values[value].needed;
  if (!can_jump(value)) return bracket.next();
  if (const Duration enough = scaled(needed->longest, just_enough);
      enough > *bracket.fails && scaled(enough, just_enough) < bracket.holds)
    return enough;
  if (const Duration too_little = scaled(needed->median, too_short);
      scaled(too_little, just_enough) < bracket.holds &&
      too_little > scaled(*bracket.fails, just_enough))
    return too_little;
  return bracket.next();
}

// In between some runs need more and some less, and no single value is to be found there.
bool Lowering::is_located(size_t value) const {
  const Bracket& bracket = board_.brackets[value];
  if (bracket.is_closed()) return true;
  const auto& needed = board_.report.values[value].needed;
  if (!can_jump(value)) return false;
  return bracket.holds <= scaled(needed->longest, just_enough * just_enough) &&
         scaled(*bracket.fails, just_enough) >= scaled(needed->median, too_short);
}

void Lowering::lower_all(std::vector<size_t> members) {
  const auto is_done = [&](size_t i) { return is_located(i); };
  for (std::erase_if(members, is_done); !members.empty() && has_time_to_locate();
       std::erase_if(members, is_done)) {
    Setting candidates = board_.holding;
    for (const size_t i : members) candidates[i] = next(i);
    lower(members, candidates);
    if (may_jump()) board_.note_needs();
  }
  board_.ran_short = !members.empty();
}

void Lowering::lower(std::span<const size_t> members, const Setting& candidates) {
  Setting tried = board_.holding;
  for (const size_t i : members) tried[i] = candidates[i];
  const Verdict verdict = check_.check(tried, LoadLevel::idle, locating);
  if (verdict == Verdict::holds) {
    board_.holding = tried;
    for (const size_t i : members) board_.brackets[i].holds = candidates[i];
  } else if (verdict == Verdict::fails && members.size() == 1) {
    board_.brackets[members.front()].fails = candidates[members.front()];
  } else if (verdict == Verdict::fails) {
    const size_t half = members.size() / 2;
    lower(members.first(half), candidates);
    if (has_time_to_locate()) lower(members.subspan(half), candidates);
  }
}

void Halving::halve_all(const std::vector<size_t>& members) {
  for (const size_t i : members)
    if (!board_.runs.over()) halve(i);
  for (const size_t i : members)
    board_.proposed[i] = std::min(round_up(board_.holding[i]), board_.own[i]);
  board_.is_settled = !board_.runs.over();
}

void Halving::halve(size_t value) {
  Bracket& bracket = board_.brackets[value];
  Duration below = bracket.fails.value_or(board_.options.from.value_or(Duration::zero()));
  while (!board_.runs.over()) {
    Setting tried = board_.holding;
    tried[value] = (below + bracket.holds) / 2;
    if (tried[value] < smallest) return;
    if (!board_.runs.run(tried, LoadLevel::idle, board_.options.fatb_runs)) return;
    const Count seen = board_.runs.counts().failures(tried, LoadLevel::idle);
    check_.tell(tried, LoadLevel::idle, seen);
    board_.runs.counts().judge(tried, LoadLevel::idle,
                               seen.hits > 0 ? Verdict::fails : Verdict::holds, 0);
    if (seen.hits > 0) {
      bracket.fails = tried[value];
    } else {
      bracket.holds = tried[value];
      board_.holding = tried;
    }
    below = bracket.fails.value_or(Duration::zero());
    if (bracket.fails && static_cast<double>(bracket.holds.count()) <=
                             static_cast<double>(bracket.fails->count()) * close_enough)
      return;
  }
}

BalanceSearch::BalanceSearch(BalanceRuns& runs, const BalanceOptions& options,
                             const TimeProfile& profile, BalanceReport& report)
    : board_(runs, options, profile, report),
      check_(board_),
      raising_(board_, check_),
      settling_(board_, check_) {
  runs.run_at_once(1);
}

void BalanceSearch::operator()(const std::vector<size_t>& searched) {
  board_.searched = searched;
  board_.runs.search(board_.values, std::ranges::any_of(searched, [&](size_t i) {
                       return board_.values[i].is_system_call;
                     }));
  if (check_.measure_base(LoadLevel::idle)) {
    check_.choose_at_once();
    if (board_.options.fatb)
      Halving(board_, check_).halve_all(searched);
    else
      balance_all();
    if (board_.is_settled) settling_.leave_out_unused();
    if (board_.is_settled) AtLoads(board_, check_, settling_, raising_).hold_at_all_loads();
    Finishing(board_, check_).measure_final();
  }
  write_report(board_);
}

void BalanceSearch::balance_all() {
  Worth worth(board_, check_);
  worth.leave_out_watchdogs();
  const TrialRunner& runner = board_.runs.runner();
  Lowering lowering(board_, check_, runner.elapsed() + scaled(runner.left(), locating_share));
  bool raise_was_tried = false;
  for (auto settled = Settling::Settled::flaky_after_all;
       settled == Settling::Settled::flaky_after_all;) {
    if (board_.base[LoadLevel::idle].failures.hits > 0 && !std::exchange(raise_was_tried, true))
      raising_.raise();
    lowering.lower_all(board_.searched);
    worth.leave_out_intervals();
    settled = board_.runs.over() ? Settling::Settled::no : settling_.settle();
    board_.is_settled = settled == Settling::Settled::yes;
  }
}

namespace {

constexpr int raise_by = 4;
constexpr double much_lower = 0.25;  // of the rate that it has now
constexpr double hardly_lower = 0.75;
constexpr double error = 0.05;
constexpr double chance = 0.01;  // that it looks lower by accident
constexpr int most_runs = 200;
constexpr int runs_in_turn = 20;
constexpr int enough_failures = 6;
constexpr size_t most_named = 3;

Setting raised(Setting setting, const std::vector<size_t>& members) {
  for (const size_t i : members) setting[i] *= raise_by;
  return setting;
}

}  // namespace

bool Raising::lowers_rate(const std::vector<size_t>& members, LoadLevel load) {
  const Count own = board_.runs.counts().own(load).failures;
  SequentialTest test(own.rate() * much_lower, own.rate() * hardly_lower, error, most_runs);
  const Setting setting = raised(board_.own, members);
  const auto is_clear = [&] {
    return test.verdict() == SequentialTest::Verdict::low &&
           fisher_more_often(own.hits, own.runs, test.hits(), test.runs()) <= chance;
  };
  board_.runs.run(setting, load, most_runs, [&](const Outcome& outcome) {
    test.add(is_bad(outcome));
    return test.verdict() == SequentialTest::Verdict::high || is_clear();
  });
  check_.tell(setting, load, {test.hits(), test.runs()});
  return is_clear();
}

// The rate that longer values were compared with may have been too high by accident: runs of both,
// in turn, that nothing has been concluded from.
bool Raising::lowers_rate_again(const std::vector<size_t>& members, LoadLevel load) {
  Count own, longer;
  const auto counted_in = [](Count& count) {
    return [&count](const Outcome& outcome) {
      count.add(is_bad(outcome));
      return false;
    };
  };
  while (own.runs < most_runs && !board_.runs.over()) {
    board_.runs.run(board_.own, load, runs_in_turn, counted_in(own));
    board_.runs.run(raised(board_.own, members), load, runs_in_turn, counted_in(longer));
    if (fisher_more_often(own, longer) <= error) return true;
    if (own.hits + longer.hits >= enough_failures && longer.hits >= hardly_lower * own.hits) break;
  }
  return false;
}

// Those that are the project's, or that were asked for.
std::vector<size_t> Raising::may_be_raised() const {
  std::vector<size_t> members;
  for (size_t i = 0; i < board_.values.size(); ++i)
    if (board_.options.sites.empty() ? board_.values[i].is_project
                                     : std::ranges::count(board_.searched, i) > 0)
      members.push_back(i);
  return members;
}

// Those that make the test fail less often when they are longer, as few as possible.
std::vector<size_t> Raising::too_short_at(LoadLevel load) {
  std::vector<size_t> members = may_be_raised();
  if (members.empty() || !lowers_rate(members, load)) return {};
  while (members.size() > 1 && !board_.runs.over()) {
    const auto middle = members.begin() + static_cast<std::ptrdiff_t>(members.size() / 2);
    const std::vector<size_t> first(members.begin(), middle), second(middle, members.end());
    if (lowers_rate(first, load))
      members = first;
    else if (!board_.runs.over() && lowers_rate(second, load))
      members = second;
    else
      break;
  }
  if (board_.runs.over() || !lowers_rate_again(members, load)) return {};
  return members;
}

std::string Raising::places_text(const std::vector<size_t>& members) const {
  if (members.size() > most_named) return fmt::format("{} places", members.size());
  std::vector<std::string> names;
  for (const size_t i : members) names.push_back(to_string(board_.values[i].site));
  return join(names, ", ");
}

// A test that fails by itself may have been given too little time somewhere.
void Raising::raise() {
  const std::vector<size_t> members = too_short_at(LoadLevel::idle);
  if (!members.empty()) return take_raised(members);
  if (board_.runs.over()) return;
  const Count seen = board_.base[LoadLevel::idle].failures;
  const std::vector<size_t> tried = may_be_raised();
  const Count longer = board_.runs.counts().failures(raised(board_.own, tried), LoadLevel::idle);
  const std::string and_then =
      tried.empty()
          ? "has no time value of its own that could be longer"
          : fmt::format("not clearly less often with {} times the time at {} ({})", raise_by,
                        places_text(tried), rate_text(longer.hits, longer.runs));
  board_.report.notes.push_back(fmt::format(
      "the test fails by itself ({}), and {}: it is taken to be flaky for another reason, which is "
      "accounted for",
      rate_text(seen.hits, seen.runs), and_then));
}

void Raising::take_raised(const std::vector<size_t>& members) {
  board_.holding = board_.ceiling = raised(board_.own, members);
  OwnFailures& base = board_.base[LoadLevel::idle];
  base.failures = board_.runs.counts().failures(board_.holding, LoadLevel::idle);
  for (const size_t i : members)
    board_.brackets[i] = {board_.holding[i], board_.own[i], board_.finest(i)};
  board_.search_also(members);
}

// There may be too little time on a busy machine only.
void Raising::raise_at(LoadLevel load) {
  const Count seen = board_.base[load].failures;
  const std::vector<size_t> members = too_short_at(load);
  if (members.empty()) return;
  board_.ceiling = raised(board_.own, members);
  board_.search_also(members);
  board_.report.notes.push_back(
      fmt::format("with its own times the test fails when the machine is {}: {}", to_string(load),
                  rate_text(seen.hits, seen.runs)));
}

}  // namespace unflake
