#include <fmt/format.h>

#include <algorithm>

#include "search/balance/balance_search.h"
#include "stats/comparison.h"
#include "stats/intervals.h"
#include "util/text.h"

namespace unflake {
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

bool BalanceSearch::lowers_rate(const std::vector<size_t>& members, LoadLevel load) {
  const Count own = runs_.own(load).failures;
  const double rate = static_cast<double>(own.hits) / std::max(1, own.runs);
  SequentialTest test(rate * much_lower, rate * hardly_lower, error, most_runs);
  const Setting setting = raised(own_, members);
  const auto is_clear = [&] {
    return test.verdict() == SequentialTest::Verdict::low &&
           fisher_more_often(own.hits, own.runs, test.hits(), test.runs()) <= chance;
  };
  runs_.run(setting, load, most_runs, [&](const Outcome& outcome) {
    test.add(is_bad(outcome));
    return test.verdict() == SequentialTest::Verdict::high || is_clear();
  });
  tell(setting, load, test.hits(), test.runs());
  return is_clear();
}

// The rate that longer values were compared with may have been too high by accident: runs of both,
// in turn, that nothing has been concluded from.
bool BalanceSearch::lowers_rate_again(const std::vector<size_t>& members, LoadLevel load) {
  Count own, longer;
  const auto counted_in = [](Count& count) {
    return [&count](const Outcome& outcome) {
      ++count.runs;
      count.hits += is_bad(outcome);
      return false;
    };
  };
  while (own.runs < most_runs && !runs_.over()) {
    runs_.run(own_, load, runs_in_turn, counted_in(own));
    runs_.run(raised(own_, members), load, runs_in_turn, counted_in(longer));
    if (fisher_more_often(own.hits, own.runs, longer.hits, longer.runs) <= error) return true;
    if (own.hits + longer.hits >= enough_failures && longer.hits >= hardly_lower * own.hits) break;
  }
  return false;
}

// Those that are the project's, or that were asked for.
std::vector<size_t> BalanceSearch::may_be_raised() const {
  std::vector<size_t> members;
  for (size_t i = 0; i < values_.size(); ++i)
    if (options_.sites.empty() ? values_[i].is_project : std::ranges::count(searched_, i) > 0)
      members.push_back(i);
  return members;
}

// Those that make the test fail less often when they are longer, as few as possible.
std::vector<size_t> BalanceSearch::too_short_at(LoadLevel load) {
  std::vector<size_t> members = may_be_raised();
  if (members.empty() || !lowers_rate(members, load)) return {};
  while (members.size() > 1 && !runs_.over()) {
    const auto middle = members.begin() + static_cast<std::ptrdiff_t>(members.size() / 2);
    const std::vector<size_t> first(members.begin(), middle), second(middle, members.end());
    if (lowers_rate(first, load))
      members = first;
    else if (!runs_.over() && lowers_rate(second, load))
      members = second;
    else
      break;
  }
  if (runs_.over() || !lowers_rate_again(members, load)) return {};
  return members;
}

std::string BalanceSearch::places_text(const std::vector<size_t>& members) const {
  if (members.size() > most_named) return fmt::format("{} places", members.size());
  std::vector<std::string> names;
  for (const size_t i : members) names.push_back(to_string(values_[i].site));
  return join(names, ", ");
}

// A test that fails by itself may have been given too little time somewhere.
void BalanceSearch::raise() {
  const std::vector<size_t> members = too_short_at(LoadLevel::idle);
  if (!members.empty()) return take_raised(members);
  if (runs_.over()) return;
  const Count seen = base_[LoadLevel::idle].failures;
  const std::vector<size_t> tried = may_be_raised();
  const Count longer = runs_.failures(raised(own_, tried), LoadLevel::idle);
  const std::string and_then =
      tried.empty()
          ? "has no time value of its own that could be longer"
          : fmt::format("not clearly less often with {} times the time at {} ({})", raise_by,
                        places_text(tried), rate_text(longer.hits, longer.runs));
  report_.notes.push_back(fmt::format(
      "the test fails by itself ({}), and {}: it is taken to be flaky for another reason, which is "
      "accounted for",
      rate_text(seen.hits, seen.runs), and_then));
}

void BalanceSearch::take_raised(const std::vector<size_t>& members) {
  holding_ = ceiling_ = raised(own_, members);
  OwnFailures& base = base_[LoadLevel::idle];
  base.failures = runs_.failures(holding_, LoadLevel::idle);
  for (const size_t i : members) brackets_[i] = {holding_[i], own_[i], finest(i)};
  search_also(members);
}

// There may be too little time on a busy machine only.
void BalanceSearch::raise_at(LoadLevel load) {
  const Count seen = base_[load].failures;
  const std::vector<size_t> members = too_short_at(load);
  if (members.empty()) return;
  ceiling_ = raised(own_, members);
  search_also(members);
  report_.notes.push_back(
      fmt::format("with its own times the test fails when the machine is {}: {}", to_string(load),
                  rate_text(seen.hits, seen.runs)));
}

void BalanceSearch::search_also(const std::vector<size_t>& members) {
  for (const size_t i : members)
    if (std::ranges::count(searched_, i) == 0) searched_.push_back(i);
}

}  // namespace unflake
