#include <algorithm>

#include "search/balance/balance_search.h"

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
