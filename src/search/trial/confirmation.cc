#include "search/trial/confirmation.h"

#include <algorithm>

#include "stats/rates.h"

namespace unflake {
namespace {

constexpr double significance = 0.05;
constexpr int most_confirming_runs = 40;

}  // namespace

bool BaseRate::add(const TrialLimit& limit) {
  auto seen = runner_.run(plain_, TrialEnded::Purpose::baseline, limit);
  if (!seen) return false;
  outcomes_.push_back(std::move(seen->result.outcome));
  return true;
}

Count BaseRate::count(const std::function<bool(const Outcome&)>& is_hit) const {
  Count count;
  for (const Outcome& outcome : outcomes_) count.add(is_hit(outcome));
  return count;
}

Confirmation::Confirmation(int candidates, int hits_before, double least_share)
    : allowed_(significance / std::max({1, candidates, (hits_before + 1) * (hits_before + 2)})),
      least_share_(least_share) {}

// It cannot come in three of five any more.
bool Confirmation::is_lost(int runs) const {
  return with_plan_.misses() > runs * (1 - least_share_) + 1e-9;
}

void Confirmation::make_runs(const Runs& make, int runs) {
  without_plan_ = make.without_plan(0);
  while (with_plan_.runs < runs) {
    const auto came = make.with_plan();
    if (!came) break;
    with_plan_.add(*came);
    if (is_lost(runs)) return;
  }
  without_plan_ = make.without_plan(runs);
}

std::optional<Confirmation::Answer> Confirmation::look(int number, int runs) const {
  if (with_plan_.hits < with_plan_.runs * least_share_ - 1e-9) return Answer::does_not;
  const int both = std::min(with_plan_.runs, without_plan_.runs);
  const double p = fisher_more_often(with_plan_, without_plan_);
  if (both >= group_of_runs && p <= allowed_ / (number * (number + 1))) return Answer::holds;
  if (both < runs) return Answer::no_time;
  return std::nullopt;
}

Confirmation::Answer Confirmation::operator()(const Runs& runs) {
  for (int number = 1; with_plan_.runs < most_confirming_runs; ++number) {
    const int wanted = std::max(group_of_runs, 2 * with_plan_.runs);
    make_runs(runs, wanted);
    if (runs.has_ended()) return Answer::ended;
    if (const auto answer = look(number, wanted)) return *answer;
  }
  return Answer::does_not;
}

}  // namespace unflake
