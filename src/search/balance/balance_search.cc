#include "search/balance/balance_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "search/balance/needs.h"
#include "search/balance/round_up.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr double finest_ratio = 1.03;
constexpr Duration finest = 200us;
constexpr double margin_by_time = 1.03;    // above what was measured
constexpr double margin_otherwise = 1.04;  // when that varies, or only passes and failures tell
constexpr double step_up = 1.05;           // when the margin was not enough
constexpr double step_at_load = 1.15;
constexpr int enough_for_a_tail = 100;
constexpr int base_runs = 10;
constexpr int base_runs_in_doubt = 30;
constexpr int base_runs_when_flaky = 100;
constexpr int final_runs = 10;
constexpr double wide_spread = 1.15;
constexpr double mostly = 0.5;
constexpr double worthwhile = 0.02;  // of the run
constexpr double least_saved_ms = 0.5;
constexpr uint64_t often = 4;  // visits in a run
constexpr int runs_to_compare = 7;

// The edge is steep: near it a value is either nearly always good or often bad. A single bad run
// may be the machine's fault.
constexpr RateCheck::Limits locating{.tolerated = 0.05, .refused = 0.5, .error = 0.05};

// Counting alone must go on for long to tell a rare failure; measured times make it shorter.
constexpr double refused_by_count = 0.02;
constexpr double refused_by_time = 0.03;
constexpr double refused_at_load = 0.05;

Duration scaled(Duration value, double factor) {
  return Duration(std::llround(static_cast<double>(value.count()) * factor));
}

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

BalanceSearch::BalanceSearch(BalanceRuns& runs, const BalanceOptions& options,
                             const TimeProfile& profile, BalanceReport& report)
    : runs_(runs),
      options_(options),
      profile_(profile),
      report_(report),
      values_(profile.values),
      own_(own_setting(values_)),
      brackets_(values_.size()),
      ceiling_(own_),
      holding_(own_),
      final_(own_) {
  for (size_t i = 0; i < own_.size(); ++i) brackets_[i].holds = own_[i];
  runs_.search(values_);
}

void BalanceSearch::operator()(const std::vector<size_t>& searched) {
  searched_ = searched;
  if (measure_base(LoadLevel::idle)) {
    choose_at_once();
    if (options_.fatb)
      halve_all(searched_);
    else
      balance_all();
    if (is_settled_)
      for (const LoadLevel load : options_.loads) hold_at(load);
    measure_final();
  }
  write();
}

// A timer may be what the test waits for, or a watchdog that is not meant to bark: what half its
// time makes no faster is of no use here.
bool BalanceSearch::is_watchdog(size_t value) {
  Setting half = own_;
  half[value] /= 2;
  const Verdict verdict = check(half, LoadLevel::idle, locating);
  if (verdict == Verdict::fails) brackets_[value].fails = half[value];
  if (verdict != Verdict::holds) return false;
  const double before = runs_.counted(own_, LoadLevel::idle).run_time.median;
  const double after = runs_.counted(half, LoadLevel::idle).run_time.median;
  return before - after < before * worthwhile;
}

void BalanceSearch::leave_out_watchdogs() {
  for (const size_t i : std::vector(searched_)) {
    if (values_[i].use() != TimeUse::not_seen || !options_.sites.empty() || runs_.over()) continue;
    if (!is_watchdog(i)) continue;
    std::erase(searched_, i);
    report_.values[i].reason = "with half of it the test was no faster: nothing waits for it";
  }
}

void BalanceSearch::balance_all() {
  leave_out_watchdogs();
  for (Settled settled = Settled::flaky_after_all; settled == Settled::flaky_after_all;) {
    if (base_[LoadLevel::idle].failures.hits > 0 && !std::exchange(raise_was_tried_, true)) raise();
    lower_all(searched_);
    leave_out_intervals();
    settled = runs_.over() ? Settled::no : settle();
    is_settled_ = settled == Settled::yes;
  }
}

// How the test does with its own times.
bool BalanceSearch::measure_base(LoadLevel load) {
  const int wanted = options_.fatb ? options_.fatb_runs : base_runs;
  (void)fails_by_itself(load, wanted);
  base_[load] = runs_.own(load);
  return !runs_.over();
}

// Whether more failures of its own show in so many runs. One that fails by itself is measured for
// longer.
bool BalanceSearch::fails_by_itself(LoadLevel load, int runs) {
  const auto never = [](const Outcome&) { return false; };
  const Count before = runs_.own(load).failures;
  runs_.run(own_, load, runs - before.runs, never);
  if (runs_.own(load).failures.hits == before.hits) return false;
  runs_.run(own_, load, base_runs_when_flaky - runs_.own(load).failures.runs, never);
  base_[load] = runs_.own(load);
  return true;
}

// Company must not show: not in how the test ends, and not in how long it takes.
void BalanceSearch::choose_at_once() {
  const int most = options_.limits.at_once;
  runs_.run_at_once(1);
  report_.at_once = 1;
  if (most < 2 || profile_.processor_share * most > mostly) return;
  if (base_[LoadLevel::idle].failures.hits > 0) return;
  const Spread alone = runs_.counted(own_, LoadLevel::idle).run_time;
  runs_.run_at_once(most);
  std::vector<double> together;
  const bool ran = runs_.run(own_, LoadLevel::idle, 3 * most, [&](const Outcome& outcome) {
    together.push_back(static_cast<double>(outcome.duration.count()) / 1000);
    return outcome.failed();
  });
  const bool disturbs = spread_of(together).median > alone.upper_quartile * finest_ratio;
  if (ran && !disturbs && runs_.own(LoadLevel::idle).failures.hits == 0) {
    report_.at_once = most;
    return;
  }
  runs_.run_at_once(1);
}

// Whether what the value is for was seen, and takes about the same time in every run.
bool BalanceSearch::is_measured(size_t value) const {
  const auto& needed = report_.values[value].needed;
  return needed && needed->at_tolerance < scaled(needed->median, wide_spread);
}

RateCheck::Limits BalanceSearch::confirming() const {
  const bool all_measured = std::ranges::all_of(searched_, [&](size_t i) {
    return !is_changed(i) || final_[i] == Duration::zero() || is_measured(i);
  });
  RateCheck::Limits limits;
  limits.tolerated = options_.tolerance;
  limits.refused =
      std::max(all_measured ? refused_by_time : refused_by_count, 4 * options_.tolerance);
  limits.error = 1 - options_.confidence;
  return limits;
}

BalanceSearch::Verdict BalanceSearch::check_once(const Setting& setting, LoadLevel load,
                                                 const RateCheck::Limits& limits) {
  RateCheck check(base_[load], limits);
  runs_.run(setting, load, limits.most_runs, [&](const Outcome& outcome) {
    check.add(outcome);
    return check.verdict() != Verdict::undecided;
  });
  return check.verdict();
}

// A few failures among many passes may come from runs side by side.
bool BalanceSearch::was_disturbed(const Setting& setting, LoadLevel load) {
  const Count seen = runs_.counted(setting, load).failures;
  if (seen.hits > mostly * seen.runs || report_.at_once == 1 || load != LoadLevel::idle)
    return false;
  runs_.run_at_once(1);
  report_.at_once = 1;
  return true;
}

BalanceSearch::Verdict BalanceSearch::check(const Setting& setting, LoadLevel load,
                                            const RateCheck::Limits& limits) {
  Verdict verdict = check_once(setting, load, limits);
  if (verdict == Verdict::fails && was_disturbed(setting, load))
    verdict = check_once(setting, load, limits);
  runs_.judge(setting, load, verdict);
  const Count seen = runs_.counted(setting, load).failures;
  runs_.say(fmt::format("{}{}: {} of {} failed", text_of(setting),
                        load == LoadLevel::idle ? "" : ", " + std::string(to_string(load)),
                        seen.hits, seen.runs));
  return verdict;
}

std::string BalanceSearch::text_of(const Setting& setting) const {
  std::vector<std::string> parts;
  for (const size_t i : searched_)
    if (setting[i] != own_[i])
      parts.push_back(
          fmt::format("{} = {}", to_string(values_[i].site),
                      setting[i] == Duration::zero() ? "none" : format_duration(setting[i])));
  return parts.empty() ? "the test's own times" : join(parts, ", ");
}

void BalanceSearch::lower_all(std::vector<size_t> members) {
  const auto is_closed = [&](size_t i) { return brackets_[i].is_closed(); };
  for (std::erase_if(members, is_closed); !members.empty() && !runs_.over();
       std::erase_if(members, is_closed)) {
    Setting candidates = holding_;
    for (const size_t i : members) candidates[i] = brackets_[i].next();
    lower(members, candidates);
  }
}

void BalanceSearch::lower(std::span<const size_t> members, const Setting& candidates) {
  Setting tried = holding_;
  for (const size_t i : members) tried[i] = candidates[i];
  const Verdict verdict = check(tried, LoadLevel::idle, locating);
  if (verdict == Verdict::holds) {
    holding_ = tried;
    for (const size_t i : members) brackets_[i].holds = candidates[i];
  } else if (verdict == Verdict::fails && members.size() == 1) {
    brackets_[members.front()].fails = candidates[members.front()];
  } else if (verdict == Verdict::fails) {
    const size_t half = members.size() / 2;
    lower(members.first(half), candidates);
    if (!runs_.over()) lower(members.subspan(half), candidates);
  }
}

void BalanceSearch::climb(Setting& setting, double step) const {
  for (const size_t i : searched_) {
    if (setting[i] >= ceiling_[i]) continue;
    const Duration lifted =
        setting[i] == Duration::zero() ? ceiling_[i] / 8 : round_up(scaled(setting[i], step));
    setting[i] = std::min(lifted, ceiling_[i]);
  }
}

// What was located, or better what was measured, with a margin. Until there are enough of them,
// measured times say nothing of the rare ones.
Setting BalanceSearch::target() {
  note_needs();
  Setting target = holding_;
  for (const size_t i : searched_) {
    if (target[i] == ceiling_[i] || target[i] == Duration::zero()) continue;
    const auto& needed = report_.values[i].needed;
    if (needed && needed->runs >= enough_for_a_tail)
      target[i] = needed->at_tolerance;
    else if (needed)
      target[i] = std::max(target[i], needed->longest);
    target[i] = scaled(target[i], is_measured(i) ? margin_by_time : margin_otherwise);
    target[i] = std::min(round_up(target[i]), ceiling_[i]);
  }
  return target;
}

// A loop that looks again and again ends when what it looks for is there, however often it looks.
void BalanceSearch::leave_out_intervals() {
  for (const size_t i : std::vector(searched_)) {
    const bool is_often = values_[i].visits >= often * std::max<uint64_t>(1, values_[i].runs);
    if (!is_often || holding_[i] >= own_[i] || runs_.over()) continue;
    Setting restored = holding_;
    restored[i] = own_[i];
    const auto never = [](const Outcome&) { return false; };
    if (!runs_.run(restored, LoadLevel::idle, runs_to_compare, never)) return;
    const double saved = runs_.counted(restored, LoadLevel::idle).run_time.median -
                         runs_.counted(holding_, LoadLevel::idle).run_time.median;
    if (saved >= worthwhile * profile_.run_time.median + least_saved_ms) continue;
    holding_ = restored;
    std::erase(searched_, i);
    report_.values[i].reason = "a shorter one made the test no faster: it only looks more often";
  }
}

// Failures that stay when the values go up may be the test's own, and are looked for the longer the
// more often that happens.
BalanceSearch::Settled BalanceSearch::settle() {
  final_ = target();
  for (int step = 1; final_ != ceiling_; ++step) {
    const Verdict verdict = check(final_, LoadLevel::idle, confirming());
    if (verdict == Verdict::undecided) return Settled::no;
    if (verdict == Verdict::holds) {
      refine(target());
      break;
    }
    if (!was_raised() && fails_by_itself(LoadLevel::idle, step * base_runs_in_doubt))
      return Settled::flaky_after_all;
    if (runs_.over()) return Settled::no;
    for (const size_t i : searched_)
      if (is_changed(i)) brackets_[i].fails = final_[i];
    climb(final_, step_up);
  }
  return Settled::yes;
}

// With the times of all these runs it is known better what is needed. Longer than what holds needs
// no new proof; what would be much shorter does.
void BalanceSearch::refine(const Setting& target) {
  const Setting held = final_;
  bool is_lowered = false;
  for (const size_t i : searched_) {
    const bool is_much = held[i] > scaled(target[i], step_up) && is_changed(i);
    is_lowered = is_lowered || is_much;
    if (target[i] > held[i] || is_much) final_[i] = target[i];
  }
  if (!is_lowered) return;
  RateCheck::Limits limits = confirming();
  limits.refused = std::max(refused_at_load, limits.refused);
  if (check(final_, LoadLevel::idle, limits) != Verdict::holds) final_ = held;
}

void BalanceSearch::note_needs() {
  for (const size_t i : searched_)
    if (brackets_[i].fails || values_[i].use() == TimeUse::timeout)
      report_.values[i].needed = needed_time(values_[i], i, runs_.kept(), options_.tolerance);
}

// A busy machine makes what is waited for slower.
void BalanceSearch::hold_at(LoadLevel load) {
  if (load == LoadLevel::idle) {
    at_load_[load] = final_;
    return;
  }
  if (final_ == own_ || runs_.over() || !measure_base(load)) return;
  if (was_raised()) base_[load] = base_[LoadLevel::idle];  // its own times are what was wrong
  RateCheck::Limits limits = confirming();
  limits.refused = std::max(refused_at_load, 4 * options_.tolerance);
  for (Setting setting = final_; !runs_.over(); climb(setting, step_at_load)) {
    const Verdict verdict = setting == ceiling_ ? Verdict::holds : check(setting, load, limits);
    if (verdict == Verdict::undecided) return;
    if (verdict == Verdict::fails) {
      fails_at_load_[load] = setting;
      if (!was_raised()) (void)fails_by_itself(load, base_runs_in_doubt);
      continue;
    }
    at_load_[load] = setting;
    for (size_t i = 0; i < final_.size(); ++i) final_[i] = std::max(final_[i], setting[i]);
    return;
  }
}

// What the values save is measured with all of them.
void BalanceSearch::measure_final() {
  if (!is_settled_) final_ = own_;
  for (const size_t i : searched_)
    if (is_changed(i)) final_[i] = round_up(scaled(final_[i], options_.scale));
  for (const size_t i : searched_)
    if (is_changed(i) && final_[i] >= own_[i] && brackets_[i].holds <= own_[i]) final_[i] = own_[i];
  const int made = runs_.counted(final_, LoadLevel::idle).failures.runs;
  if (final_ != own_)
    runs_.run(final_, LoadLevel::idle, final_runs - made, [](const Outcome&) { return false; });
}

}  // namespace unflake
