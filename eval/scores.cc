#include "scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "figures.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

template <class Holds>
std::vector<Measured> those(const std::vector<Measured>& all, Holds holds) {
  std::vector<Measured> some;
  std::ranges::copy_if(all, std::back_inserter(some), holds);
  return some;
}

std::string names_of(const std::vector<Measured>& some) {
  std::vector<std::string> names;
  for (const Measured& one : some) names.push_back(one.truth->program);
  return join(names, ", ");
}

std::string share(size_t some, size_t all) {
  if (all == 0) return "0 of 0";
  return fmt::format("{} of {} ({:.1f} %)", some, all,
                     100.0 * static_cast<double>(some) / static_cast<double>(all));
}

std::string with_names(std::string text, const char* what, const std::vector<Measured>& some) {
  return some.empty() ? text : fmt::format("{}; {}: {}", text, what, names_of(some));
}

Score reproduced_score(const std::string& figure, const std::vector<Measured>& late, double least) {
  const auto good = those(late, [](const Measured& one) { return one.reproduced(); });
  const auto bad = those(late, [](const Measured& one) { return !one.reproduced(); });
  const auto inverted =
      those(good, [](const Measured& one) { return one.result->search.is_inverted; });
  std::string text = share(good.size(), late.size());
  text = with_names(text, "as a plan under which a mostly failing test passes", inverted);
  return {figure, with_names(text, "not", bad),
          least == 1 ? "all" : fmt::format(">= {:.0f} %", 100 * least),
          reaches(good.size(), late.size(), least)};
}

Score replay_score(const std::vector<Measured>& late, Replays Measurement::*which,
                   const std::string& figure, double least) {
  const auto good = those(late, [](const Measured& one) { return one.reproduced(); });
  const auto comes_back = [&](const Measured& one) { return one.always_comes_back(which); };
  const auto stable = those(good, comes_back);
  const auto others = those(good, [&](const Measured& one) { return !comes_back(one); });
  return {figure, with_names(share(stable.size(), good.size()), "not", others),
          fmt::format(">= {:.0f} %", 100 * least), reaches(stable.size(), good.size(), least)};
}

// A search by all strategies begins with the guided one, so that what this finds is found alike.
const Search& guided_search(const Measured& one) {
  const Search* alone = one.alone("guided");
  return alone ? *alone : one.result->search;
}

bool found_by_guided(const Measured& one) {
  const Search& search = guided_search(one);
  return search.is_truth && search.found_by == "guided";
}

std::vector<Score> run_scores(const std::vector<Measured>& late) {
  const auto good = those(late, found_by_guided);
  const auto bad = those(late, [](const Measured& one) { return !found_by_guided(one); });
  std::vector<double> runs;
  for (const Measured& one : good) runs.push_back(guided_search(one).runs);
  const std::string over = fmt::format("over {} programs", good.size());
  return {{"search runs until guided has it, median",
           with_names(fmt::format("{:.1f} {}", median(runs), over), "not found by it", bad), "<= 2",
           !runs.empty() && median(runs) <= 2},
          {"the same, mean", fmt::format("{:.1f} {}", mean(runs), over), "<= 4",
           !runs.empty() && mean(runs) <= 4}};
}

std::vector<Score> time_scores(const std::vector<Measured>& late) {
  if (late.empty()) return {};
  std::vector<double> seconds;
  for (const Measured& one : late) seconds.push_back(one.result->search.elapsed_us / 1e6);
  const auto worst =
      std::ranges::max(late, {}, [](const Measured& one) { return one.result->search.elapsed_us; });
  return {{"wall time of `unflake reproduce`, all families, median",
           fmt::format("{:.1f} s over {} programs", median(seconds), late.size()), "<= 1.5 s",
           median(seconds) <= 1.5},
          {"the same, 90th percentile; worst",
           fmt::format("{:.1f} s; {:.1f} s ({})", quantile(seconds, 0.9),
                       worst.result->search.elapsed_us / 1e6, worst.truth->program),
           "<= 8 s", quantile(seconds, 0.9) <= 8}};
}

// What orders of threads alone can cause.
std::vector<Score> interleaving_scores(const std::vector<Measured>& late) {
  std::vector<double> runs, seconds;
  for (const Measured& one : late) {
    seconds.push_back(one.result->search.elapsed_us / 1e6);
    if (one.reproduced()) runs.push_back(one.result->search.runs);
  }
  return {reproduced_score("interleavings reproduced", late, 0.95),
          {"the same: runs until it fails, median", fmt::format("{:.0f}", median(runs)), "<= 15",
           !runs.empty() && median(runs) <= 15},
          {"the same: wall time, median", fmt::format("{:.1f} s", median(seconds)), "<= 1 s",
           !runs.empty() && median(seconds) <= 1}};
}

std::vector<Score> honesty_scores(const std::vector<Measured>& rest) {
  const auto reported = those(rest, [](const Measured& one) { return one.result->search.found; });
  const auto broken =
      those(rest, [](const Measured& one) { return one.truth->expect == "broken"; });
  const auto called = those(rest, [](const Measured& one) {
    return one.result->search.says_broken != (one.truth->expect == "broken");
  });
  return {
      {"reports on programs that must not be reported",
       with_names(fmt::format("{} of {}", reported.size(), rest.size()), "namely", reported), "0",
       reported.empty()},
      {"broken programs called broken, and no other",
       with_names(fmt::format("{} broken ones, {} called wrongly", broken.size(), called.size()),
                  "namely", called),
       "none wrongly", called.empty()}};
}

std::vector<Score> explanation_scores(const std::vector<Measured>& late) {
  size_t explained = 0, category = 0;
  struct {
    size_t asked = 0, right = 0, by_caller = 0;
  } critical, barrier;
  const auto count = [](auto& sum, const Agreement& agreement) {
    sum.asked += agreement.asked;
    sum.right += agreement.any();
    sum.by_caller += agreement.caller;
  };
  size_t unknown = 0;
  const auto against = those(
      late, [](const Measured& one) { return !one.result->explained.contradictions.empty(); });
  std::vector<double> seconds;
  for (const Measured& one : late) {
    if (!one.reproduced() || !one.truth->is_explained()) continue;
    seconds.push_back(static_cast<double>(one.result->explained.elapsed_us) / 1e6);
    unknown += one.result->explained.cause.empty() || one.result->explained.cause == "unknown";
    const ExplanationCheck found = check(*one.truth, one.result->explained);
    ++explained;
    category += found.category;
    count(critical, found.critical);
    count(barrier, found.barrier);
  }
  const auto lines = [](const auto& sum) {
    return fmt::format("{}, {} of them by the caller's line", share(sum.right, sum.asked),
                       sum.by_caller);
  };
  return {{"explanation: category right", share(category, explained), ">= 95 %",
           reaches(category, explained, 0.95)},
          {"explanation: category unknown", share(unknown, explained), "<= 5 %",
           20 * unknown <= explained},
          {"explanation: words that its own experiments contradict",
           with_names(std::to_string(against.size()), "namely", against), "0",
           explained > 0 && against.empty()},
          {"explanation: critical line right, within one line", lines(critical), ">= 90 %",
           reaches(critical.right, critical.asked, 0.9)},
          {"explanation: barrier line right, within one line", lines(barrier), ">= 90 %",
           reaches(barrier.right, barrier.asked, 0.9)},
          {"explanation: wall time, median", fmt::format("{:.1f} s", median(seconds)), "<= 5 s",
           !seconds.empty() && median(seconds) <= 5}};
}

struct Place {
  std::string_view file;
  int line = 0;
};

Place place_in(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  Place place{text.substr(0, colon)};
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), place.line);
  return place;
}

bool is_near(const std::string& truth, const std::string& found) {
  const Place a = place_in(truth), b = place_in(found);
  return a.line > 0 && b.line > 0 && a.file == b.file && std::abs(a.line - b.line) <= 1;
}

Agreement agreement(const std::string& truth, const std::string& place, const std::string& caller) {
  Agreement found;
  found.asked = place_in(truth).line > 0;
  found.place = is_near(truth, place);
  found.caller = !found.place && is_near(truth, caller);
  return found;
}

}  // namespace

bool Measured::always_comes_back(Replays Measurement::*which) const {
  const Replays& replays = result->*which;
  return replays.runs > 0 && replays.as_recorded == replays.runs;
}

const Search* Measured::alone(const std::string& strategy) const {
  const auto found = std::ranges::find(result->compared, strategy, &Search::strategies);
  return found == result->compared.end() ? nullptr : &*found;
}

namespace {

ExplanationCheck check_way(const WayToFail& way, const Explained& explained) {
  return {way.category == explained.cause,
          agreement(way.critical, explained.critical, explained.critical_caller),
          agreement(way.barrier, explained.barrier, explained.barrier_caller)};
}

}  // namespace

// A repro shows one way to fail, and the explanation is about that one.
ExplanationCheck check(const Truth& truth, const Explained& explained) {
  const ExplanationCheck found =
      check_way({truth.category, truth.critical, truth.barrier}, explained);
  if (!truth.other_way) return found;
  const ExplanationCheck other = check_way(*truth.other_way, explained);
  const auto right = [](const ExplanationCheck& one) {
    return one.category + one.critical.any() + one.barrier.any();
  };
  return right(other) > right(found) ? other : found;
}

std::vector<Measured> late_ones(const std::vector<Measured>& all) {
  return those(all, [](const Measured& one) { return one.truth->lateness_can_cause_it; });
}

std::vector<Measured> others(const std::vector<Measured>& all) {
  return those(all, [](const Measured& one) { return !one.truth->lateness_can_cause_it; });
}

std::vector<Measured> of_family(const std::vector<Measured>& all, const std::string& family) {
  return those(all, [&](const Measured& one) { return one.truth->family == family; });
}

std::vector<Score> scores_of(const std::vector<Measured>& all, const EvalSettings& settings) {
  const auto late = late_ones(all), rest = others(all);
  const auto usual = of_family(late, "");
  std::vector<Score> scores{
      reproduced_score("failures reproduced, of those that lateness can cause", usual, 0.95)};
  const auto add = [&](const std::vector<Score>& more) {
    scores.insert(scores.end(), more.begin(), more.end());
  };
  if (const auto some = of_family(late, "interleavings"); !some.empty())
    add(interleaving_scores(some));
  if (const auto some = of_family(late, "layers"); !some.empty())
    add({reproduced_score("programs with layers of their own reproduced", some, 0.95)});
  if (const auto some = of_family(late, "unsteady"); !some.empty())
    add({reproduced_score("tests that fail by themselves now and then reproduced", some, 1)});
  add({replay_score(late, &Measurement::replays,
                    fmt::format("of all these, come back in {0} of {0} replays", settings.replays),
                    0.98),
       replay_score(late, &Measurement::busy_replays,
                    fmt::format("the same beside {} busy processes", settings.busy), 0.95)});
  if (settings.with_strategies) add(run_scores(usual));
  for (const auto& more : {time_scores(late), honesty_scores(rest), explanation_scores(late)})
    add(more);
  return scores;
}

}  // namespace unflake::eval
