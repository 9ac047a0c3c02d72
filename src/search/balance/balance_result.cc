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
    tried.is_careful = is_settled_ && tried.values == careful_ && careful_ != final_ &&
                       tried.load == LoadLevel::idle;
    (tried.values == own_ ? report_.base : report_.tried).push_back(std::move(tried));
  }
  mark_front(report_.tried);
  if (ran_short_ && is_settled_)
    report_.notes.push_back(
        "time ran short before the shortest values were located, and the rest of it was for the "
        "proof of what held by then: a larger --budget may find shorter ones");
  report_.base_failures = by_frequency(runs_.own_headlines());
  for (const size_t i : searched_) describe(i);
}

void BalanceSearch::describe(size_t value) {
  BalancedValue& balanced = report_.values[value];
  balanced.proposed = final_[value];
  balanced.is_unneeded = is_changed(value) && final_[value] == Duration::zero();
  using Change = BalancedValue::Change;
  if (!is_changed(value))
    balanced.change = Change::keep;
  else
    balanced.change = final_[value] < own_[value] ? Change::shorten : Change::raise;
  for (const auto& [load, setting] : at_load_)
    balanced.loads.push_back({load, setting[value], fails_at(load, value)});
  if (balanced.change == Change::keep) balanced.reason = why_kept(value);
}

// When several went up together it is not known which of them was too short.
std::optional<Duration> BalanceSearch::fails_at(LoadLevel load, size_t value) const {
  if (load == LoadLevel::idle) return brackets_[value].fails;
  const auto failed = fails_at_load_.find(load);
  if (failed == fails_at_load_.end()) return std::nullopt;
  const Setting& held = at_load_.at(load);
  const auto rose =
      std::ranges::count_if(searched_, [&](size_t i) { return failed->second[i] != held[i]; });
  if (rose != 1 || failed->second[value] == held[value]) return std::nullopt;
  return failed->second[value];
}

std::string BalanceSearch::why_kept(size_t value) const {
  if (const auto known = why_kept_.find(value); known != why_kept_.end()) return known->second;
  if (is_settled_) return "no shorter one held";
  if (holding_[value] == own_[value]) return "the search was over before it could tell";
  const Count seen = runs_.failures(holding_, LoadLevel::idle);
  return fmt::format("the search was over before {} was proven, where {} of {} runs failed",
                     format_duration(holding_[value]), seen.hits, seen.runs);
}

}  // namespace unflake
