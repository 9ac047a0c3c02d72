#include <fmt/format.h>

#include <algorithm>

#include "search/balance/balance_runs.h"
#include "search/balance/balance_search.h"
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
bool Settling::is_measured(size_t value, double spread) const {
  const auto& needed = board_.report.values[value].needed;
  return needed && needed->at_tolerance < scaled(needed->median, spread);
}

RateCheck::Limits Settling::confirming() const {
  const auto all_measured = [&](double spread) {
    return std::ranges::all_of(board_.searched, [&](size_t i) {
      return !board_.is_changed(i) || board_.proposed[i] == Duration::zero() ||
             is_measured(i, spread);
    });
  };
  RateCheck::Limits limits;
  limits.tolerated = board_.options.tolerance;
  const double refused = all_measured(narrow_spread) ? refused_by_steady_time
                         : all_measured(wide_spread) ? refused_by_time
                                                     : refused_by_count;
  limits.refused = std::max(refused, 4 * board_.options.tolerance);
  limits.error = 1 - board_.options.confidence;
  return limits;
}

// All that are needed go up together; that nothing needs the others is doubted last.
void Settling::climb(Setting& setting, double step, bool with_unneeded) const {
  const bool is_any_needed = std::ranges::any_of(board_.searched, [&](size_t i) {
    return setting[i] > Duration::zero() && setting[i] < board_.ceiling[i];
  });
  for (const size_t i : board_.searched) {
    if (setting[i] >= board_.ceiling[i]) continue;
    if (setting[i] == Duration::zero() && is_any_needed && !with_unneeded) continue;
    const Duration lifted =
        setting[i] == Duration::zero() ? board_.ceiling[i] / 8 : scaled(setting[i], step);
    setting[i] =
        std::min(round_up(std::max(lifted, setting[i] + board_.finest(i))), board_.ceiling[i]);
  }
}

// What was located, or better what was measured, with a margin. Until there are enough of them,
// measured times say nothing of the rare ones.
Setting Settling::target() {
  board_.note_needs();
  Setting target = board_.holding;
  for (const size_t i : board_.searched) {
    if (target[i] == board_.ceiling[i] || target[i] == Duration::zero()) continue;
    const auto& needed = board_.report.values[i].needed;
    if (needed && needed->times >= enough_for_a_tail)
      target[i] = needed->at_tolerance;
    else if (needed)
      target[i] = std::max(target[i], needed->longest);
    target[i] =
        scaled(target[i], is_measured(i, narrow_spread) ? margin_by_time : margin_otherwise);
    target[i] = std::min(round_up(target[i]), board_.ceiling[i]);
  }
  return target;
}

// Failures that stay when the values go up may be the test's own, and are looked for the longer the
// more often that happens.
Settling::Settled Settling::settle() {
  board_.proposed = target();
  for (int step = 1; board_.proposed != board_.ceiling; ++step) {
    const Verdict verdict = check_.check(board_.proposed, LoadLevel::idle, confirming());
    if (verdict == Verdict::undecided) return Settled::no;
    if (verdict == Verdict::holds) {
      refine(target());
      break;
    }
    const bool is_doubtful =
        !check_.mostly_fails(board_.proposed, LoadLevel::idle) && !board_.was_raised();
    const bool was_known = board_.base[LoadLevel::idle].failures.hits > 0;
    const int looks = step * base_runs_in_doubt;
    if (is_doubtful && can_afford(looks) && check_.fails_by_itself(LoadLevel::idle, looks) &&
        !was_known)
      return Settled::flaky_after_all;
    if (board_.runs.over()) return Settled::no;
    for (const size_t i : board_.searched)
      if (board_.is_changed(i) && board_.changed() == 1)
        board_.brackets[i].fails = board_.proposed[i];
    if (step == 1 && check_.mostly_fails(board_.proposed, LoadLevel::idle) &&
        check_.check_once(board_.proposed, LoadLevel::idle, locating) == Verdict::fails)
      forget_needs();
    else
      lift_final(step > 1);
  }
  return Settled::yes;
}

// The runs that failed show what they needed. To go there in small steps would take many runs, and
// each step might hold by chance.
void Settling::lift_final(bool with_unneeded) {
  const Setting seen = target();
  climb(board_.proposed, step_up, with_unneeded);
  for (const size_t i : board_.searched) board_.proposed[i] = std::max(board_.proposed[i], seen[i]);
}

// Runs with the test's own times may be by far the longest.
bool Settling::can_afford(int base_runs) const {
  const int more = base_runs - board_.runs.counts().failures(board_.own, LoadLevel::idle).runs;
  return more * from_ms(board_.profile.run_time.median) <
         (board_.options.limits.budget - board_.runs.runner().elapsed()) / 5;
}

// Values that held together do so no more with what was measured: they depend on each other, and so
// do the times.
void Settling::forget_needs() {
  board_.proposed = board_.holding;
  for (const size_t i : board_.searched) {
    board_.report.values[i].needed.reset();
    board_.proposed[i] =
        std::min(round_up(scaled(board_.holding[i], margin_otherwise)), board_.ceiling[i]);
  }
  board_.needs_are_known = false;
}

// With the times of all these runs it is known better what is needed. Longer than what holds needs
// no new proof; what would be much shorter does.
void Settling::refine(const Setting& target) {
  const Setting held = board_.proposed;
  bool is_lowered = false;
  for (const size_t i : board_.searched) {
    const bool is_much = held[i] > scaled(target[i], step_up) && board_.is_changed(i);
    is_lowered = is_lowered || is_much;
    if (target[i] > held[i] || is_much) board_.proposed[i] = target[i];
  }
  if (!is_lowered) return;
  const bool has_failed =
      board_.runs.counts().of(board_.proposed, LoadLevel::idle).verdict == Verdict::fails;
  if (has_failed || check_.check(board_.proposed, LoadLevel::idle, confirming()) != Verdict::holds)
    board_.proposed = held;
}

// What no run asked for was not tried, whatever became of the runs.
void Settling::leave_out_unused() {
  const int runs = board_.runs.counts().failures(board_.proposed, LoadLevel::idle).runs;
  for (const size_t i : board_.searched) {
    if (!is_set(board_.values[i], board_.proposed[i]) || runs == 0) continue;
    const int used = board_.runs.counts().used(board_.proposed, LoadLevel::idle, i);
    if (2 * used < runs)
      board_.report.notes.push_back(
          fmt::format("{} was asked for in {} of {} runs with the new values, and the others say "
                      "nothing about it",
                      to_string(board_.values[i].site), used, runs));
    if (used > 0) continue;
    board_.proposed[i] = board_.own[i];
    board_.why_kept[i] = "no run with another time came to it";
  }
}

// What fails at a load and has no longer value that was proven there is not proposed.
void AtLoads::hold_at_all_loads() {
  std::vector<std::string> not_tried;
  for (const LoadLevel load : board_.options.loads) {
    const Held held = hold_at(load);
    if (held == Held::not_tried) not_tried.emplace_back(to_string(load));
    if (held != Held::no) continue;
    board_.is_settled = false;
    for (const size_t i : board_.searched)
      if (board_.is_changed(i))
        board_.why_kept[i] = fmt::format(
            "{} held when idle and not at the load `{}`, and the search was over before a longer "
            "one was proven there",
            format_duration(board_.proposed[i]), to_string(load));
    return;
  }
  if (!not_tried.empty() && board_.changed() > 0)
    board_.report.notes.push_back(
        fmt::format("the search was over before the new values were tried at these loads: {}",
                    join(not_tried, ", ")));
}

// A busy machine makes what is waited for slower.
AtLoads::Held AtLoads::hold_at(LoadLevel load) {
  if (load == LoadLevel::idle) {
    board_.at_load[load] = board_.proposed;
    return Held::yes;
  }
  if (board_.runs.over() || !check_.measure_base(load)) return Held::not_tried;
  if (board_.base[load].failures.hits > 0 && !board_.was_raised()) raising_.raise_at(load);
  if (board_.proposed == board_.own && !board_.was_raised()) return Held::yes;
  if (board_.was_raised())
    board_.base[load] = board_.base[LoadLevel::idle];  // its own times are what was wrong
  return climb_at(load);
}

// What went up along with the others may not be needed after all.
void AtLoads::let_go_of_unneeded(Setting& setting, LoadLevel load,
                                 const RateCheck::Limits& limits) {
  Setting without = setting;
  for (const size_t i : board_.searched)
    if (board_.proposed[i] == Duration::zero()) without[i] = board_.proposed[i];
  if (without != setting && check_.check(without, load, limits) == Verdict::holds)
    setting = without;
}

AtLoads::Held AtLoads::climb_at(LoadLevel load) {
  RateCheck::Limits limits = settling_.confirming();
  limits.refused = std::max(refused_at_load, 4 * board_.options.tolerance);
  Setting setting = board_.proposed;
  for (int step = 1;; ++step) {
    const Verdict verdict =
        setting == board_.ceiling ? Verdict::holds : check_.check(setting, load, limits);
    if (verdict == Verdict::undecided) break;
    if (verdict == Verdict::holds) {
      let_go_of_unneeded(setting, load, limits);
      board_.at_load[load] = setting;
      for (size_t i = 0; i < board_.proposed.size(); ++i)
        board_.proposed[i] = std::max(board_.proposed[i], setting[i]);
      return Held::yes;
    }
    board_.fails_at_load[load] = setting;
    if (!board_.was_raised() && !check_.mostly_fails(setting, load))
      (void)check_.fails_by_itself(load, base_runs_in_doubt);
    settling_.climb(setting, step_at_load, step > 1);
  }
  return board_.fails_at_load.contains(load) ? Held::no : Held::not_tried;
}

// Where that is longer than what the test asks for, nothing is known of what it needs there.
void Finishing::scale_for_other_machine() {
  if (board_.options.scale == 1) return;
  for (const size_t i : board_.searched) {
    if (!board_.is_changed(i)) continue;
    const Duration here = board_.proposed[i];
    board_.proposed[i] = round_up(scaled(here, board_.options.scale));
    if (board_.proposed[i] < board_.own[i] || board_.ceiling[i] != board_.own[i]) continue;
    board_.proposed[i] = board_.own[i];
    if (board_.options.scale > 1)
      board_.why_kept[i] = fmt::format(
          "{} held here, and {:g} times that is no shorter: it may be too short on the other "
          "machine",
          format_duration(here), board_.options.scale);
  }
}

// What the values save is measured with all of them, and at a load also when a later one made them
// longer.
void Finishing::measure_final() {
  if (!board_.is_settled) board_.proposed = board_.own;
  scale_for_other_machine();
  if (board_.proposed == board_.own) return;
  const auto made_at = [&](LoadLevel load) {
    return board_.runs.counts().failures(board_.proposed, load).runs;
  };
  if (made_at(LoadLevel::idle) == 0 && !board_.options.fatb &&
      check_.check(board_.proposed, LoadLevel::idle, locating) == Verdict::fails) {
    for (const size_t i : board_.searched)
      if (board_.is_changed(i))
        board_.why_kept[i] = fmt::format("{} failed when idle, though a shorter one held",
                                         format_duration(board_.proposed[i]));
    board_.is_settled = false;
    board_.proposed = board_.own;
    return;
  }
  board_.runs.run(board_.proposed, LoadLevel::idle, final_runs - made_at(LoadLevel::idle));
  for (const auto& [load, held] : board_.at_load)
    board_.runs.run(board_.proposed, load, final_runs - made_at(load));
  measure_careful();
}

// Who takes over the others alone shall know what that saves.
void Finishing::measure_careful() {
  board_.careful = board_.proposed;
  for (const size_t i : board_.searched)
    if (board_.values[i].is_quiet() && board_.proposed[i] < board_.own[i])
      board_.careful[i] = board_.own[i];
  if (board_.careful == board_.proposed || board_.careful == board_.own) return;
  if (check_.check(board_.careful, LoadLevel::idle, locating) == Verdict::fails) return;
  board_.runs.run(board_.careful, LoadLevel::idle,
                  final_runs - board_.runs.counts().failures(board_.careful, LoadLevel::idle).runs);
}

namespace {

constexpr double worthwhile = 0.02;  // of the run
constexpr double least_saved_ms = 0.5;
constexpr uint64_t often = 4;  // visits in a run
constexpr int runs_to_compare = 7;

}  // namespace

// A timer may be what the test waits for, or a watchdog that is not meant to bark: what half its
// time makes no faster is of no use here.
bool Worth::is_watchdog(size_t value) {
  Setting half = board_.own;
  half[value] /= 2;
  const Verdict verdict = check_.check(half, LoadLevel::idle, locating);
  if (verdict == Verdict::fails) board_.brackets[value].fails = half[value];
  if (verdict != Verdict::holds) return false;
  const double before = board_.runs.counts().of(board_.own, LoadLevel::idle).run_time.median;
  const double after = board_.runs.counts().of(half, LoadLevel::idle).run_time.median;
  return before - after < before * worthwhile;
}

void Worth::leave_out_watchdogs() {
  for (const size_t i : std::vector(board_.searched)) {
    if (board_.values[i].use() != TimeUse::not_seen || !board_.options.sites.empty() ||
        board_.runs.over())
      continue;
    if (!is_watchdog(i)) continue;
    std::erase(board_.searched, i);
    board_.report.values[i].reason = "with half of it the test was no faster: nothing waits for it";
  }
}

// A loop that looks again and again ends when what it looks for is there, however often it looks.
void Worth::leave_out_intervals() {
  for (const size_t i : std::vector(board_.searched)) {
    const bool is_often =
        board_.values[i].visits >= often * std::max<uint64_t>(1, board_.values[i].runs);
    if (!is_often || board_.holding[i] >= board_.own[i] || board_.runs.over()) continue;
    Setting restored = board_.holding;
    restored[i] = board_.own[i];
    if (!board_.runs.run(restored, LoadLevel::idle, runs_to_compare)) return;
    if (check_.mostly_fails(restored, LoadLevel::idle)) continue;  // others depend on it
    const double saved = board_.runs.counts().of(restored, LoadLevel::idle).run_time.median -
                         board_.runs.counts().of(board_.holding, LoadLevel::idle).run_time.median;
    if (saved >= worthwhile * board_.profile.run_time.median + least_saved_ms) continue;
    board_.holding = restored;
    std::erase(board_.searched, i);
    board_.report.values[i].reason =
        "a shorter one made the test no faster: it only looks more often";
  }
}

}  // namespace unflake
