#include <fmt/format.h>

#include <algorithm>

#include "search/balance/balance_search.h"
#include "stats/rates.h"
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

bool Raising::lowers_rate(const std::vector<size_t>& members, LoadLevel load) {
  const Count own = board_.runs.counts().own(load).failures;
  SequentialTest test(own.rate() * much_lower, own.rate() * hardly_lower, error, most_runs);
  const Setting setting = raised(board_.own, members);
  const auto is_clear = [&] {
    return test.verdict() == SequentialTest::Verdict::low &&
           fisher_more_often(own.hits, own.runs, test.hits(), test.runs()) <= chance;
  };
  board_.runs.run(setting, load, most_runs, [&](const Outcome& outcome) {
    test.add(is_bad(outcome));
    return test.verdict() == SequentialTest::Verdict::high || is_clear();
  });
  check_.tell(setting, load, {test.hits(), test.runs()});
  return is_clear();
}

// The rate that longer values were compared with may have been too high by accident: runs of both,
// in turn, that nothing has been concluded from.
bool Raising::lowers_rate_again(const std::vector<size_t>& members, LoadLevel load) {
  Count own, longer;
  const auto counted_in = [](Count& count) {
    return [&count](const Outcome& outcome) {
      count.add(is_bad(outcome));
      return false;
    };
  };
  while (own.runs < most_runs && !board_.runs.over()) {
    board_.runs.run(board_.own, load, runs_in_turn, counted_in(own));
    board_.runs.run(raised(board_.own, members), load, runs_in_turn, counted_in(longer));
    if (fisher_more_often(own, longer) <= error) return true;
    if (own.hits + longer.hits >= enough_failures && longer.hits >= hardly_lower * own.hits) break;
  }
  return false;
}

// Those that are the project's, or that were asked for.
std::vector<size_t> Raising::may_be_raised() const {
  std::vector<size_t> members;
  for (size_t i = 0; i < board_.values.size(); ++i)
    if (board_.options.sites.empty() ? board_.values[i].is_project
                                     : std::ranges::count(board_.searched, i) > 0)
      members.push_back(i);
  return members;
}

// Those that make the test fail less often when they are longer, as few as possible.
std::vector<size_t> Raising::too_short_at(LoadLevel load) {
  std::vector<size_t> members = may_be_raised();
  if (members.empty() || !lowers_rate(members, load)) return {};
  while (members.size() > 1 && !board_.runs.over()) {
    const auto middle = members.begin() + static_cast<std::ptrdiff_t>(members.size() / 2);
    const std::vector<size_t> first(members.begin(), middle), second(middle, members.end());
    if (lowers_rate(first, load))
      members = first;
    else if (!board_.runs.over() && lowers_rate(second, load))
      members = second;
    else
      break;
  }
  if (board_.runs.over() || !lowers_rate_again(members, load)) return {};
  return members;
}

std::string Raising::places_text(const std::vector<size_t>& members) const {
  if (members.size() > most_named) return fmt::format("{} places", members.size());
  std::vector<std::string> names;
  for (const size_t i : members) names.push_back(to_string(board_.values[i].site));
  return join(names, ", ");
}

// A test that fails by itself may have been given too little time somewhere.
void Raising::raise() {
  const std::vector<size_t> members = too_short_at(LoadLevel::idle);
  if (!members.empty()) return take_raised(members);
  if (board_.runs.over()) return;
  const Count seen = board_.base[LoadLevel::idle].failures;
  const std::vector<size_t> tried = may_be_raised();
  const Count longer = board_.runs.counts().failures(raised(board_.own, tried), LoadLevel::idle);
  const std::string and_then =
      tried.empty()
          ? "has no time value of its own that could be longer"
          : fmt::format("not clearly less often with {} times the time at {} ({})", raise_by,
                        places_text(tried), rate_text(longer.hits, longer.runs));
  board_.report.notes.push_back(fmt::format(
      "the test fails by itself ({}), and {}: it is taken to be flaky for another reason, which is "
      "accounted for",
      rate_text(seen.hits, seen.runs), and_then));
}

void Raising::take_raised(const std::vector<size_t>& members) {
  board_.holding = board_.ceiling = raised(board_.own, members);
  OwnFailures& base = board_.base[LoadLevel::idle];
  base.failures = board_.runs.counts().failures(board_.holding, LoadLevel::idle);
  for (const size_t i : members)
    board_.brackets[i] = {board_.holding[i], board_.own[i], board_.finest(i)};
  board_.search_also(members);
}

// There may be too little time on a busy machine only.
void Raising::raise_at(LoadLevel load) {
  const Count seen = board_.base[load].failures;
  const std::vector<size_t> members = too_short_at(load);
  if (members.empty()) return;
  board_.ceiling = raised(board_.own, members);
  board_.search_also(members);
  board_.report.notes.push_back(
      fmt::format("with its own times the test fails when the machine is {}: {}", to_string(load),
                  rate_text(seen.hits, seen.runs)));
}

}  // namespace unflake
