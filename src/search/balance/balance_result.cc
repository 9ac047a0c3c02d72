#include <fmt/format.h>

#include <algorithm>

#include "search/balance/balance_search.h"

namespace unflake {
namespace {

std::vector<std::string> by_frequency(const std::map<std::string, int>& headlines) {
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [headline, runs] : headlines) order.emplace_back(-runs, headline);
  std::ranges::sort(order);
  std::vector<std::string> result;
  for (auto& [runs, headline] : order) result.push_back(std::move(headline));
  return result;
}

}  // namespace

void BalanceSearch::write() {
  for (TriedSetting& tried : runs_.all()) {
    tried.is_final = is_settled_ && tried.values == final_ && final_ != own_;
    (tried.values == own_ ? report_.base : report_.tried).push_back(std::move(tried));
  }
  mark_front(report_.tried);
  report_.base_failures = by_frequency(runs_.own_headlines());
  for (const size_t i : searched_) describe(i);
}

void BalanceSearch::describe(size_t value) {
  BalancedValue& balanced = report_.values[value];
  const Bracket& bracket = brackets_[value];
  balanced.proposed = final_[value];
  balanced.is_unneeded = is_changed(value) && final_[value] == Duration::zero();
  using Change = BalancedValue::Change;
  if (!is_changed(value))
    balanced.change = Change::keep;
  else
    balanced.change = final_[value] < own_[value] ? Change::shorten : Change::raise;
  for (const auto& [load, setting] : at_load_) {
    Duration fails =
        load == LoadLevel::idle ? bracket.fails.value_or(Duration::zero()) : Duration::zero();
    if (const auto failed = fails_at_load_.find(load); failed != fails_at_load_.end())
      fails = failed->second[value];
    balanced.loads.push_back({load, setting[value], fails});
  }
  if (balanced.change == Change::keep)
    balanced.reason =
        is_settled_ ? "no shorter one held" : "the search was over before it could tell";
}

}  // namespace unflake
