#include <fmt/format.h>

#include <algorithm>

#include "report/balance_words.h"
#include "report/study_words.h"
#include "report/style.h"
#include "stats/rates.h"

namespace unflake {
namespace {

using Answer = ClaimReport::Answer;
using AtLoad = ClaimReport::AtLoad;

class ClaimWording {
 public:
  explicit ClaimWording(const ClaimReport& report)
      : report_(report), from_(value_text(report.from)), to_(value_text(report.to)) {}

  ClaimWords operator()() {
    words_.test = one_line(to_string(report_.test));
    words_.result = result_text();
    if (report_.value.visits > 0) {
      words_.value.push_back(one_line(title_of(report_.value)));
      for (std::string& fact : facts_of(report_.value)) words_.value.push_back(std::move(fact));
    }
    for (const AtLoad& at : report_.loads) {
      tell_measured(at);
      words_.answers.push_back(fmt::format("{}: {}", to_string(at.load), answer_text(at)));
    }
    words_.notes.push_back(fmt::format("{} in {}; p is of Fisher's exact test, one-sided",
                                       counted(report_.runs, "run"),
                                       format_duration(report_.elapsed)));
    if (report_.interrupted)
      words_.notes.push_back("interrupted: this is what was known until then");
    for (const std::string& note : report_.notes) words_.notes.push_back(one_line(note));
    return std::move(words_);
  }

 private:
  bool is_everywhere(Answer answer) const {
    return std::ranges::all_of(report_.loads,
                               [&](const AtLoad& at) { return at.answer == answer; });
  }

  bool never_failed() const {
    return std::ranges::all_of(report_.loads, [](const AtLoad& at) {
      return at.with_from.hits == 0 && at.with_to.hits == 0;
    });
  }

  std::string loads_with(Answer answer) const {
    std::string names;
    for (const AtLoad& at : report_.loads)
      if (at.answer == answer)
        names += (names.empty() ? "" : ", ") + std::string(to_string(at.load));
    return names;
  }

  std::string result_text() const {
    const std::string change = fmt::format("{} instead of {}", to_, from_);
    if (report_.loads.empty()) return change + ": nothing was measured";
    if (const std::string worse = loads_with(Answer::fails_more); !worse.empty())
      return fmt::format("{} makes the test fail more often ({})", change, worse);
    if (const std::string better = loads_with(Answer::fails_less); !better.empty())
      return fmt::format("{} makes the test fail less often ({})", change, better);
    if (is_everywhere(Answer::no_difference))
      return change + " makes no difference that shows to how often the test fails";
    if (never_failed())
      return change + ": the test failed with neither, so that nothing tells them apart";
    return change + ": too few runs to tell whether the test fails less often";
  }

  void tell_measured(const AtLoad& at) {
    for (const auto& [value, failures, times] : {std::tuple(from_, at.with_from, at.time_with_from),
                                                 std::tuple(to_, at.with_to, at.time_with_to)})
      words_.measured.push_back(fmt::format(
          "{}, {}: {}{}", to_string(at.load), value, failures_text(failures, report_.confidence),
          times.count == 0 ? "" : fmt::format("; median passing run {}", ms_text(times.median))));
  }

  std::string answer_text(const AtLoad& at) const {
    const std::string p = "p = " + p_text(at.p_value);
    switch (at.answer) {
      case Answer::fails_less:
        return fmt::format("fails less often with {} ({}){}", to_, p, cost_text(at));
      case Answer::fails_more:
        return fmt::format("fails more often with {} ({}){}", to_, p, cost_text(at));
      case Answer::no_difference:
        return fmt::format(
            "no difference ({}); a drop to {} or less would have shown with {} confidence{}", p,
            percent(at.detectable), confidence_text(report_.confidence), cost_text(at));
      case Answer::cannot_tell:
        break;
    }
    std::string text = fmt::format("cannot tell ({})", p);
    if (at.more_runs > 0)
      text += fmt::format("; {} with {} would, if all of them pass",
                          counted(at.more_runs, "more run"), to_);
    return text;
  }

  static std::string cost_text(const AtLoad& at) {
    if (at.time_with_from.count == 0 || at.time_with_to.count == 0) return "";
    const double more = at.time_with_to.median - at.time_with_from.median;
    return fmt::format("; a passing run takes {} {} (median)", ms_text(more < 0 ? -more : more),
                       more < 0 ? "less" : "more");
  }

  const ClaimReport& report_;
  const std::string from_, to_;
  ClaimWords words_;
};

}  // namespace

ClaimWords words_of(const ClaimReport& report) {
  return ClaimWording(report)();
}

}  // namespace unflake
