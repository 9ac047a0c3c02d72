#include "report/balance_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/layout.h"
#include "report/study_pages.h"
#include "stats/rates.h"
#include "util/text.h"

namespace unflake {
namespace {

using Change = BalancedValue::Change;

constexpr size_t most_unchanged = 20;  // values that are shown though nothing is done to them
constexpr size_t most_headlines = 5;
constexpr int enough_to_estimate = 100;

bool is_foreign(const BalancedValue& value) {
  return !value.value.is_project && value.change == Change::not_searched;
}

std::string tolerance_text(double tolerance) {
  return fmt::format("{:g} %", tolerance * 100);
}

// Without a failure, this many runs show by counting alone that the rate is tolerable.
int64_t runs_that_would_show(double tolerance, double confidence) {
  return static_cast<int64_t>(std::ceil(std::log1p(-confidence) / std::log1p(-tolerance)));
}

class Wording {
 public:
  explicit Wording(const BalanceReport& report) : report_(report) {}

  BalanceWords operator()() {
    words_.test = one_line(to_string(report_.test));
    words_.result = result_text();
    tell_values();
    tell_own_failures();
    for (const TriedSetting& tried : report_.tried)
      if (tried.is_final && changed() > 0) tell_final(tried);
    if (!words_.meaning.empty()) tell_limits();
    tell_how();
    return std::move(words_);
  }

 private:
  long long changed() const {
    return std::ranges::count_if(report_.values, &BalancedValue::is_changed);
  }

  std::string result_text() const {
    const long long values = static_cast<long long>(report_.values.size());
    if (report_.runs == 0) return "nothing is known: no run was made";
    if (values == 0)
      return fmt::format(
          "no time value to change: in {} no call passed a time to a sleep, a timed wait, a poll, "
          "a socket or a timer",
          counted(report_.runs, "run"));
    if (changed() > 0) return changed_text();
    const long long foreign = std::ranges::count_if(report_.values, is_foreign);
    if (foreign == values)
      return fmt::format("nothing to propose: {} seen, all in third-party code",
                         counted(values, "time value"));
    return fmt::format("nothing to propose: {} seen, {} tried with other times",
                       counted(values, "time value"), tried());
  }

  long long tried() const {
    long long number = 0;
    for (size_t i = 0; i < report_.values.size(); ++i)
      number += std::ranges::any_of(report_.tried, [&](const TriedSetting& tried) {
        return i < tried.values.size() && tried.values[i] != report_.values[i].value.most;
      });
    return number;
  }

  std::string changed_text() const {
    const std::string what = fmt::format("{} proposed", counted(changed(), "new value"));
    const TriedSetting* after = report_.final_setting(LoadLevel::idle);
    const double saved = report_.saved_ms();
    if (!after || after->failures.runs == 0)
      return what + "; the search was over before a run with all of them";
    if (after->run_time.count == 0)
      return what + "; no run with all of them passed, so that nothing is known of the run time";
    const double now = after->run_time.median, before = now + saved;
    std::string text = fmt::format("{}: a run takes {} instead of {} (median, idle)", what,
                                   ms_text(now), ms_text(before));
    if (saved > 0) text += fmt::format(", {} or {} less", ms_text(saved), percent(saved / before));
    return text + careful_text();
  }

  std::string careful_text() const {
    if (!report_.may_weaken()) return "";
    const double saved = report_.saved_carefully_ms();
    return saved > 0 ? fmt::format("; {} less when waits that nothing ended early keep their time",
                                   ms_text(saved))
                     : "; all of it in waits that nothing ended early, of which a shorter one may "
                       "test less";
  }

  void tell_values() {
    size_t unchanged = 0, left_out = 0;
    for (size_t i = 0; i < report_.values.size(); ++i) {
      const BalancedValue& value = report_.values[i];
      if (!value.is_changed() && ++unchanged > most_unchanged)
        ++left_out;
      else if (is_foreign(value))
        words_.foreign.push_back(one_line(
            fmt::format("{}: {}", title_of(value.value), join(facts_of(value.value), "; "))));
      else
        words_.values.push_back(words_of(report_, i));
    }
    if (!words_.foreign.empty())
      words_.foreign.push_back("These are shown, not changed: --site SITE changes one.");
    if (left_out > 0)
      words_.notes.push_back(fmt::format("{} that nothing was done to not shown: --json has all",
                                         counted(static_cast<long long>(left_out), "more value")));
  }

  void tell_own_failures() {
    std::string counts;
    for (const TriedSetting& base : report_.base)
      if (base.failures.hits > 0)
        counts += fmt::format("{}{}: {}", counts.empty() ? "" : "; ", to_string(base.load),
                              failures_text(base.failures, report_.confidence));
    if (counts.empty()) return;
    words_.measured.push_back(fmt::format("The test fails with its own values too ({}).", counts));
    const bool is_raised = std::ranges::any_of(report_.values, [](const BalancedValue& value) {
      return value.change == BalancedValue::Change::raise;
    });
    words_.measured.push_back(
        is_raised ? "With more time it fails less often, and the raised values are judged by that."
                  : "That was accounted for: a value holds as long as the test does not fail "
                    "clearly more often with it.");
    tell_headlines();
  }

  void tell_headlines() {
    const std::vector<std::string>& all = report_.base_failures;
    for (size_t i = 0; i < std::min(all.size(), most_headlines); ++i)
      words_.measured.push_back(one_line("fails anyway: " + all[i]));
    if (all.size() > most_headlines)
      words_.measured.push_back(fmt::format(
          "and in {}", counted(static_cast<long long>(all.size() - most_headlines), "more way")));
  }

  void tell_final(const TriedSetting& setting) {
    if (setting.failures.runs <= 0) return;
    words_.meaning.push_back(
        fmt::format("proposed values, {}: {}", to_string(setting.load),
                    setting.failures.hits == 0 ? passes_text(setting) : rate_words(setting)));
  }

  // A test that passes with less time passes with more. Of the shorter ones that held, one counts:
  // adding up just those without a failure would promise too much.
  int passes_with_less(const TriedSetting& setting) const {
    int most = 0;
    for (const TriedSetting& tried : report_.tried) {
      const bool is_shorter =
          tried.load == setting.load && tried.values != setting.values &&
          std::ranges::equal(tried.values, setting.values, std::ranges::less_equal());
      if (is_shorter && tried.verdict == TriedSetting::Verdict::holds && tried.failures.hits == 0)
        most = std::max(most, tried.failures.runs);
    }
    return most;
  }

  std::string passes_text(const TriedSetting& setting) const {
    const int shorter = passes_with_less(setting);
    const int runs = std::max(setting.failures.runs, shorter);
    const double bound = upper_bound_zero_failures(runs, report_.confidence);
    std::string text = fmt::format("0 of {} failed", counted(setting.failures.runs, "run"));
    if (shorter == runs) text += fmt::format(", and 0 of {} with even shorter values", shorter);
    text += fmt::format(": the rate is below {} with {} confidence", percent_at_most(bound),
                        confidence_text(report_.confidence));
    const std::string tolerated = tolerance_text(report_.tolerance);
    if (bound <= report_.tolerance) return text + ", within the tolerance of " + tolerated;
    if (setting.load == LoadLevel::idle && is_estimated())
      return text + fmt::format(
                        "; the estimate of {} comes from the measured times, not from "
                        "counting",
                        tolerated);
    if (!(report_.tolerance > 0)) return text + "; no number of runs shows a rate of 0 %";
    return text +
           fmt::format("; counting alone shows a rate of {} after {} without a failure", tolerated,
                       counted(runs_that_would_show(report_.tolerance, report_.confidence), "run"));
  }

  // A value that nothing needs has no times to estimate from: only counting helps there.
  bool is_estimated() const {
    return std::ranges::all_of(report_.values, [](const BalancedValue& value) {
      const auto& needed = value.needed;
      return !value.is_changed() ||
             (needed && needed->times >= enough_to_estimate &&
              needed->at_tolerance > Duration::zero() && value.proposed >= needed->at_tolerance);
    });
  }

  std::string rate_words(const TriedSetting& setting) const {
    const std::string text =
        fmt::format("{}, {} of them as the own values did not show",
                    failures_text(setting.failures, report_.confidence), setting.new_failures);
    switch (setting.verdict) {
      case TriedSetting::Verdict::holds:
        return text + ": not clearly more often than with the own values" + refused_text(setting);
      case TriedSetting::Verdict::fails:
        return text + fmt::format(": more than the own values and the tolerance of {} explain",
                                  tolerance_text(report_.tolerance));
      case TriedSetting::Verdict::undecided:
        break;
    }
    return text + ": too few runs to tell whether the new values add to it";
  }

  std::string refused_text(const TriedSetting& setting) const {
    if (!(setting.refused_rate > 0)) return "";
    return fmt::format("; {} or more would have been refused with {} confidence",
                       percent(setting.refused_rate), confidence_text(report_.confidence));
  }

  void tell_limits() {
    words_.meaning.push_back(
        report_.scale == 1
            ? "This holds for machines as fast as this one, under these loads: --scale makes the "
              "values longer for slower ones."
            : fmt::format("The proposed values are {:g} times what this machine needs (--scale).",
                          report_.scale));
  }

  void tell_how() {
    std::string how =
        fmt::format("{} in {}", counted(report_.runs, "run"), format_duration(report_.elapsed));
    if (report_.at_once > 1) how += fmt::format(", up to {} at once", report_.at_once);
    if (!report_.method.empty()) how += ", method " + report_.method;
    words_.notes.push_back(one_line(how + ", tolerance " + tolerance_text(report_.tolerance)));
    if (report_.interrupted)
      words_.notes.push_back("interrupted: this is what was known until then");
    if (report_.out_of_budget)
      words_.notes.push_back(
          "the time that was allowed is used up: a larger --budget may tell more");
    for (const std::string& note : report_.notes) words_.notes.push_back(one_line(note));
    tell_of_half_a_patch();
  }

  // What was proven is all of the values together.
  void tell_of_half_a_patch() {
    std::vector<std::string> by_hand;
    size_t edits = 0;
    for (const BalancedValue& value : report_.values) {
      if (!value.is_changed() || value.is_left_for_its_length()) continue;
      if (value.source && value.source->can_be_edited())
        ++edits;
      else
        by_hand.push_back(to_string(value.value.site));
    }
    if (edits == 0 || by_hand.empty()) return;
    words_.notes.push_back(one_line(fmt::format(
        "the values were measured together, and the edits alone were not: change {} too, or run "
        "again with --site for those that you edit",
        join(by_hand, ", "))));
  }

  const BalanceReport& report_;
  BalanceWords words_;
};

}  // namespace

std::string value_text(Duration value) {
  const int64_t us = value.count();
  if (us == 0) return "0";
  if (us < 1'000) return fmt::format("{} us", us);
  if (us < 1'000'000) return fmt::format("{:.6g} ms", static_cast<double>(us) / 1e3);
  return fmt::format("{:.12g} s", static_cast<double>(us) / 1e6);
}

std::string ms_text(double ms) {
  return (ms < 0 ? "-" : "") + format_duration(Duration(std::llround(std::abs(ms) * 1000)));
}

std::string confidence_text(double confidence) {
  return fmt::format("{:g} %", confidence * 100);
}

std::string failures_text(const Count& failures, double confidence) {
  if (failures.runs <= 0) return "no run passed or failed";
  std::string text = fmt::format("{} of {} failed", failures.hits, counted(failures.runs, "run"));
  if (failures.hits == 0)
    return text + fmt::format(" (rate below {} with {} confidence)",
                              percent_at_most(upper_bound_zero_failures(failures.runs, confidence)),
                              confidence_text(confidence));
  return text + fmt::format(" ({}, {} interval {})",
                            percent(static_cast<double>(failures.hits) / failures.runs),
                            confidence_text(confidence),
                            interval_text(failures.interval(confidence)));
}

BalanceWords words_of(const BalanceReport& report) {
  return Wording(report)();
}

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
