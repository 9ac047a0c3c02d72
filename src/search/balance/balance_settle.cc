#include <algorithm>

#include "search/balance/balance_search.h"
#include "search/balance/needs.h"
#include "search/balance/round_up.h"

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

void BalanceSearch::climb(Setting& setting, double step) const {
  for (const size_t i : searched_) {
    if (setting[i] >= ceiling_[i]) continue;
    const Duration lifted =
        setting[i] == Duration::zero() ? ceiling_[i] / 8 : round_up(scaled(setting[i], step));
    setting[i] = std::min(std::max(lifted, setting[i] + finest(i)), ceiling_[i]);
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
    const int looks = step * base_runs_in_doubt;
    if (is_doubtful && can_afford(looks) && fails_by_itself(LoadLevel::idle, looks))
      return Settled::flaky_after_all;
    if (runs_.over()) return Settled::no;
    for (const size_t i : searched_)
      if (is_changed(i)) brackets_[i].fails = final_[i];
    if (step == 1 && mostly_fails(final_, LoadLevel::idle) &&
        check_once(final_, LoadLevel::idle, locating) == Verdict::fails)
      forget_needs();
    else
      climb(final_, step_up);
  }
  return Settled::yes;
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
  if (is_lowered && check(final_, LoadLevel::idle, confirming()) != Verdict::holds) final_ = held;
}

void BalanceSearch::note_needs() {
  if (!needs_are_known_) return;
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
  if (runs_.over() || !measure_base(load)) return;
  if (base_[load].failures.hits > 0 && !was_raised()) raise_at(load);
  if (final_ == own_ && !was_raised()) return;
  if (was_raised()) base_[load] = base_[LoadLevel::idle];  // its own times are what was wrong
  RateCheck::Limits limits = confirming();
  limits.refused = std::max(refused_at_load, 4 * options_.tolerance);
  for (Setting setting = final_; !runs_.over(); climb(setting, step_at_load)) {
    const Verdict verdict = setting == ceiling_ ? Verdict::holds : check(setting, load, limits);
    if (verdict == Verdict::undecided) return;
    if (verdict == Verdict::fails) {
      fails_at_load_[load] = setting;
      if (!was_raised() && !mostly_fails(setting, load))
        (void)fails_by_itself(load, base_runs_in_doubt);
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
    if (is_changed(i) && final_[i] >= own_[i] && ceiling_[i] == own_[i]) final_[i] = own_[i];
  const int made = runs_.failures(final_, LoadLevel::idle).runs;
  if (final_ != own_) runs_.run(final_, LoadLevel::idle, final_runs - made);
}

}  // namespace unflake
