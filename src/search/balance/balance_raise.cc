#include <fmt/format.h>

#include <algorithm>

#include "search/balance/balance_search.h"
#include "stats/rates.h"

namespace unflake {
namespace {

constexpr int raise_by = 4;
constexpr double much_lower = 0.25;  // of the rate that it has now
constexpr double hardly_lower = 0.75;
constexpr double error = 0.05;
constexpr int most_runs = 200;

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
  runs_.run(setting, load, most_runs, [&](const Outcome& outcome) {
    test.add(outcome.failed());
    return test.verdict() != SequentialTest::Verdict::undecided;
  });
  tell(setting, load, test.hits(), test.runs());
  return test.verdict() == SequentialTest::Verdict::low;
}

// Those that make the test fail less often when they are longer, as few as possible.
std::vector<size_t> BalanceSearch::too_short_at(LoadLevel load) {
  std::vector<size_t> members;
  for (size_t i = 0; i < values_.size(); ++i)
    if (options_.sites.empty() ? values_[i].is_project : std::ranges::count(searched_, i) > 0)
      members.push_back(i);
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
  return runs_.over() ? std::vector<size_t>() : members;
}

// A test that fails by itself may have been given too little time somewhere.
void BalanceSearch::raise() {
  const std::vector<size_t> members = too_short_at(LoadLevel::idle);
  if (!members.empty()) return take_raised(members);
  const Count& seen = base_[LoadLevel::idle].failures;
  if (!runs_.over())
    report_.notes.push_back(fmt::format(
        "the test fails by itself ({}), and does so no less often when all its time values are {} "
        "times longer: it is flaky for another reason, which is accounted for",
        rate_text(seen.hits, seen.runs), raise_by));
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
