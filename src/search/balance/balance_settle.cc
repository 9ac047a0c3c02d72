#include <fmt/format.h>

#include <algorithm>

#include "search/balance/balance_search.h"
#include "search/balance/needs.h"
#include "search/balance/setting.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr double margin_by_time = 1.03;    // above what was measured
constexpr double margin_otherwise = 1.04;  // when that varies, or only passes and failures tell
constexpr double step_up = 1.05;           // when the margin was not enough
constexpr double step_at_load = 1.15;
constexpr int enough_for_a_tail = 100;
constexpr int base_runs_in_doubt = 30;
constexpr int final_runs = 10;
constexpr double narrow_spread = 1.05, wide_spread = 1.15;

// Counting alone must go on for long to tell a rare failure; measured times make it shorter.
constexpr double refused_by_count = 0.02;
constexpr double refused_by_time = 0.03;
constexpr double refused_by_steady_time = 0.04;
constexpr double refused_at_load = 0.05;

}  // namespace

// Whether what the value is for was seen, and takes about the same time in every run.
bool BalanceSearch::is_measured(size_t value, double spread) const {
  const auto& needed = report_.values[value].needed;
  return needed && needed->at_tolerance < scaled(needed->median, spread);
}

RateCheck::Limits BalanceSearch::confirming() const {
  const auto all_measured = [&](double spread) {
    return std::ranges::all_of(searched_, [&](size_t i) {
      return !is_changed(i) || final_[i] == Duration::zero() || is_measured(i, spread);
    });
  };
  RateCheck::Limits limits;
  limits.tolerated = options_.tolerance;
  const double refused = all_measured(narrow_spread) ? refused_by_steady_time
                         : all_measured(wide_spread) ? refused_by_time
                                                     : refused_by_count;
  limits.refused = std::max(refused, 4 * options_.tolerance);
  limits.error = 1 - options_.confidence;
  return limits;
}

// All that are needed go up together; that nothing needs the others is doubted last.
void BalanceSearch::climb(Setting& setting, double step, bool with_unneeded) const {
  const bool is_any_needed = std::ranges::any_of(searched_, [&](size_t i) {
    return setting[i] > Duration::zero() && setting[i] < ceiling_[i];
  });
  for (const size_t i : searched_) {
    if (setting[i] >= ceiling_[i]) continue;
    if (setting[i] == Duration::zero() && is_any_needed && !with_unneeded) continue;
    const Duration lifted =
        setting[i] == Duration::zero() ? ceiling_[i] / 8 : scaled(setting[i], step);
    setting[i] = std::min(round_up(std::max(lifted, setting[i] + finest(i))), ceiling_[i]);
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
    if (needed && needed->times >= enough_for_a_tail)
      target[i] = needed->at_tolerance;
    else if (needed)
      target[i] = std::max(target[i], needed->longest);
    target[i] =
        scaled(target[i], is_measured(i, narrow_spread) ? margin_by_time : margin_otherwise);
    target[i] = std::min(round_up(target[i]), ceiling_[i]);
  }
  return target;
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
    const bool is_doubtful = !mostly_fails(final_, LoadLevel::idle) && !was_raised();
    const bool was_known = base_[LoadLevel::idle].failures.hits > 0;
    const int looks = step * base_runs_in_doubt;
    if (is_doubtful && can_afford(looks) && fails_by_itself(LoadLevel::idle, looks) && !was_known)
      return Settled::flaky_after_all;
    if (runs_.over()) return Settled::no;
    for (const size_t i : searched_)
      if (is_changed(i) && changed() == 1) brackets_[i].fails = final_[i];
    if (step == 1 && mostly_fails(final_, LoadLevel::idle) &&
        check_once(final_, LoadLevel::idle, locating) == Verdict::fails)
      forget_needs();
    else
      lift_final(step > 1);
  }
  return Settled::yes;
}

// The runs that failed show what they needed. To go there in small steps would take many runs, and
// each step might hold by chance.
void BalanceSearch::lift_final(bool with_unneeded) {
  const Setting seen = target();
  climb(final_, step_up, with_unneeded);
  for (const size_t i : searched_) final_[i] = std::max(final_[i], seen[i]);
}

// Runs with the test's own times may be by far the longest.
bool BalanceSearch::can_afford(int base_runs) const {
  const int more = base_runs - runs_.failures(own_, LoadLevel::idle).runs;
  return more * from_ms(profile_.run_time.median) < (options_.limits.budget - runs_.elapsed()) / 5;
}

// Values that held together do so no more with what was measured: they depend on each other, and so
// do the times.
void BalanceSearch::forget_needs() {
  final_ = holding_;
  for (const size_t i : searched_) {
    report_.values[i].needed.reset();
    final_[i] = std::min(round_up(scaled(holding_[i], margin_otherwise)), ceiling_[i]);
  }
  needs_are_known_ = false;
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
  const bool has_failed = runs_.counted(final_, LoadLevel::idle).verdict == Verdict::fails;
  if (has_failed || check(final_, LoadLevel::idle, confirming()) != Verdict::holds) final_ = held;
}

void BalanceSearch::note_needs() {
  if (!needs_are_known_) return;
  for (const size_t i : searched_)
    if (brackets_[i].fails || values_[i].use() == TimeUse::timeout)
      report_.values[i].needed = needed_time(values_[i], i, runs_.kept(), options_.tolerance);
}

// What no run asked for was not tried, whatever became of the runs.
void BalanceSearch::leave_out_unused() {
  const int runs = runs_.failures(final_, LoadLevel::idle).runs;
  for (const size_t i : searched_) {
    if (!is_set(values_[i], final_[i]) || runs == 0) continue;
    const int used = runs_.used(final_, LoadLevel::idle, i);
    if (2 * used < runs)
      report_.notes.push_back(
          fmt::format("{} was asked for in {} of {} runs with the new values, and the others say "
                      "nothing about it",
                      to_string(values_[i].site), used, runs));
    if (used > 0) continue;
    final_[i] = own_[i];
    why_kept_[i] = "no run with another time came to it";
  }
}

// What fails at a load and has no longer value that was proven there is not proposed.
void BalanceSearch::hold_at_all_loads() {
  std::vector<std::string> not_tried;
  for (const LoadLevel load : options_.loads) {
    const Held held = hold_at(load);
    if (held == Held::not_tried) not_tried.emplace_back(to_string(load));
    if (held != Held::no) continue;
    is_settled_ = false;
    for (const size_t i : searched_)
      if (is_changed(i))
        why_kept_[i] = fmt::format(
            "{} held when idle and not at the load `{}`, and the search was over before a longer "
            "one was proven there",
            format_duration(final_[i]), to_string(load));
    return;
  }
  if (!not_tried.empty() && changed() > 0)
    report_.notes.push_back(
        fmt::format("the search was over before the new values were tried at these loads: {}",
                    join(not_tried, ", ")));
}

// A busy machine makes what is waited for slower.
BalanceSearch::Held BalanceSearch::hold_at(LoadLevel load) {
  if (load == LoadLevel::idle) {
    at_load_[load] = final_;
    return Held::yes;
  }
  if (runs_.over() || !measure_base(load)) return Held::not_tried;
  if (base_[load].failures.hits > 0 && !was_raised()) raise_at(load);
  if (final_ == own_ && !was_raised()) return Held::yes;
  if (was_raised()) base_[load] = base_[LoadLevel::idle];  // its own times are what was wrong
  return climb_at(load);
}

// What went up along with the others may not be needed after all.
void BalanceSearch::let_go_of_unneeded(Setting& setting, LoadLevel load,
                                       const RateCheck::Limits& limits) {
  Setting without = setting;
  for (const size_t i : searched_)
    if (final_[i] == Duration::zero()) without[i] = final_[i];
  if (without != setting && check(without, load, limits) == Verdict::holds) setting = without;
}

BalanceSearch::Held BalanceSearch::climb_at(LoadLevel load) {
  RateCheck::Limits limits = confirming();
  limits.refused = std::max(refused_at_load, 4 * options_.tolerance);
  Setting setting = final_;
  for (int step = 1;; ++step) {
    const Verdict verdict = setting == ceiling_ ? Verdict::holds : check(setting, load, limits);
    if (verdict == Verdict::undecided) break;
    if (verdict == Verdict::holds) {
      let_go_of_unneeded(setting, load, limits);
      at_load_[load] = setting;
      for (size_t i = 0; i < final_.size(); ++i) final_[i] = std::max(final_[i], setting[i]);
      return Held::yes;
    }
    fails_at_load_[load] = setting;
    if (!was_raised() && !mostly_fails(setting, load))
      (void)fails_by_itself(load, base_runs_in_doubt);
    climb(setting, step_at_load, step > 1);
  }
  return fails_at_load_.contains(load) ? Held::no : Held::not_tried;
}

// Where that is longer than what the test asks for, nothing is known of what it needs there.
void BalanceSearch::scale_for_other_machine() {
  if (options_.scale == 1) return;
  for (const size_t i : searched_) {
    if (!is_changed(i)) continue;
    const Duration here = final_[i];
    final_[i] = round_up(scaled(here, options_.scale));
    if (final_[i] < own_[i] || ceiling_[i] != own_[i]) continue;
    final_[i] = own_[i];
    if (options_.scale > 1)
      why_kept_[i] = fmt::format(
          "{} held here, and {:g} times that is no shorter: it may be too short on the other "
          "machine",
          format_duration(here), options_.scale);
  }
}

// What the values save is measured with all of them, and at a load also when a later one made them
// longer.
void BalanceSearch::measure_final() {
  if (!is_settled_) final_ = own_;
  scale_for_other_machine();
  if (final_ == own_) return;
  const auto made_at = [&](LoadLevel load) { return runs_.failures(final_, load).runs; };
  if (made_at(LoadLevel::idle) == 0 && !options_.fatb &&
      check(final_, LoadLevel::idle, locating) == Verdict::fails) {
    for (const size_t i : searched_)
      if (is_changed(i))
        why_kept_[i] = fmt::format("{} failed when idle, though a shorter one held",
                                   format_duration(final_[i]));
    is_settled_ = false;
    final_ = own_;
    return;
  }
  runs_.run(final_, LoadLevel::idle, final_runs - made_at(LoadLevel::idle));
  for (const auto& [load, held] : at_load_) runs_.run(final_, load, final_runs - made_at(load));
  measure_careful();
}

// Who takes over the others alone shall know what that saves.
void BalanceSearch::measure_careful() {
  careful_ = final_;
  for (const size_t i : searched_)
    if (values_[i].is_quiet() && final_[i] < own_[i]) careful_[i] = own_[i];
  if (careful_ == final_ || careful_ == own_) return;
  if (check(careful_, LoadLevel::idle, locating) == Verdict::fails) return;
  runs_.run(careful_, LoadLevel::idle, final_runs - runs_.failures(careful_, LoadLevel::idle).runs);
}

}  // namespace unflake

// Values that could be shorter, and would save nothing.
namespace unflake {
namespace {

constexpr double worthwhile = 0.02;  // of the run
constexpr double least_saved_ms = 0.5;
constexpr uint64_t often = 4;  // visits in a run
constexpr int runs_to_compare = 7;

}  // namespace

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

// A loop that looks again and again ends when what it looks for is there, however often it looks.
void BalanceSearch::leave_out_intervals() {
  for (const size_t i : std::vector(searched_)) {
    const bool is_often = values_[i].visits >= often * std::max<uint64_t>(1, values_[i].runs);
    if (!is_often || holding_[i] >= own_[i] || runs_.over()) continue;
    Setting restored = holding_;
    restored[i] = own_[i];
    if (!runs_.run(restored, LoadLevel::idle, runs_to_compare)) return;
    if (mostly_fails(restored, LoadLevel::idle)) continue;  // others depend on it
    const double saved = runs_.counted(restored, LoadLevel::idle).run_time.median -
                         runs_.counted(holding_, LoadLevel::idle).run_time.median;
    if (saved >= worthwhile * profile_.run_time.median + least_saved_ms) continue;
    holding_ = restored;
    std::erase(searched_, i);
    report_.values[i].reason = "a shorter one made the test no faster: it only looks more often";
  }
}

}  // namespace unflake
