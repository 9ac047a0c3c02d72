#include <fmt/format.h>

#include <algorithm>

#include "report/balance_pages.h"
#include "report/layout.h"
#include "util/text.h"

namespace unflake {
namespace {

using Change = BalancedValue::Change;

constexpr size_t most_callers_told = 10;

std::string without_unit(const std::string& text, const std::string& other) {
  const size_t unit = text.rfind(' '), other_unit = other.rfind(' ');
  if (unit == std::string::npos || other_unit == std::string::npos) return text;
  return text.substr(unit) == other.substr(other_unit) ? text.substr(0, unit) : text;
}

std::string range_text(Duration least, Duration most) {
  if (least == most) return value_text(most);
  const std::string end = format_duration(most);
  return fmt::format("{}..{}", without_unit(format_duration(least), end), end);
}

std::string asked_text(const TimeValue& value) {
  if (value.least == value.most) return value_text(value.most);
  if (value.is_constant()) return "about " + format_duration(value.most);
  const std::string range = range_text(value.least, value.most);
  if (value.callers.empty()) return range + ", computed at run time";
  return fmt::format("{}, as its {} callers say", range, value.callers.size());
}

std::string caller_text(const TimeValue::Caller& caller, const TimeValue& value) {
  const auto runs = static_cast<int64_t>(std::max<uint64_t>(1, value.runs));
  return one_line(fmt::format("{} asks for {}; {}, {} spent in a run", caller.location,
                              range_text(caller.least, caller.most),
                              counted(static_cast<long long>(caller.visits), "visit"),
                              format_duration(caller.spent / runs)));
}

void add_callers(const TimeValue& value, std::vector<std::string>& facts) {
  const size_t shown = std::min(value.callers.size(), most_callers_told);
  for (size_t i = 0; i < shown; ++i) facts.push_back(caller_text(value.callers[i], value));
  if (shown < value.callers.size())
    facts.push_back(
        fmt::format("and {} with less time: --json has all",
                    counted(static_cast<long long>(value.callers.size() - shown), "more caller")));
}

std::string ends_text(const TimeValue& value) {
  const uint64_t ends = value.ran_out + value.ended_early;
  switch (value.use()) {
    case TimeUse::wait:
      return fmt::format("a wait: it ran out in all {} that were seen to end",
                         counted(static_cast<long long>(ends), "visit"));
    case TimeUse::timeout:
      return fmt::format("a time-out: it ended early in all {} that were seen to end",
                         counted(static_cast<long long>(ends), "visit"));
    case TimeUse::mixed:
      return fmt::format("now a wait, now a time-out: of {} it ran out in {} and ended early in {}",
                         counted(static_cast<long long>(ends), "visit"), value.ran_out,
                         value.ended_early);
    case TimeUse::not_seen:
      break;
  }
  return "armed here, ends elsewhere: how it ended was not seen";
}

std::string factor_text(double factor) {
  return fmt::format("{:.{}f}", factor, factor < 10 ? 1 : 0);
}

// For a time-out only what it took counts, whatever it asks for.
std::string room_text(const TimeValue& value) {
  if (value.early.empty() || value.use() == TimeUse::wait) return "";
  const Duration longest = std::ranges::max(value.early);
  std::string text = fmt::format("the longest of {} that ended early took {}",
                                 counted(static_cast<long long>(value.early.size()), "visit"),
                                 format_duration(longest));
  if (longest.count() > 0)
    text += fmt::format(": the value is {} times as long",
                        factor_text(static_cast<double>(value.most.count()) /
                                    static_cast<double>(longest.count())));
  return text;
}

class ValueWording {
 public:
  ValueWording(const BalanceReport& report, size_t index)
      : report_(report), index_(index), value_(report.values[index]) {}

  BalancedValueWords operator()() {
    words_.index = index_;
    words_.title = one_line(fmt::format("{}. {}", index_ + 1, title_of(value_.value)));
    words_.is_changed = value_.is_changed();
    words_.proposal = one_line(proposal_text());
    words_.facts = facts_of(value_.value);
    for (const auto& at : value_.loads) tell_load(at);
    if (value_.needed) tell_needed(*value_.needed);
    tell_advice();
    if (value_.source) tell_source(*value_.source);
    return std::move(words_);
  }

 private:
  std::string proposal_text() const {
    const std::string now = asked_text(value_.value);
    const std::string reason = value_.reason.empty() ? "" : ": " + value_.reason;
    switch (value_.change) {
      case Change::shorten:
      case Change::raise:
        if (!value_.value.callers.empty()) return share_text() + reason;
        return fmt::format("{}{} instead of {}{}", proposed_text(),
                           value_.value.is_constant() ? "" : " for the longest, in proportion,",
                           now, reason);
      case Change::keep:
        return fmt::format("keep {}{}", now, reason);
      case Change::not_searched:
        break;
    }
    return fmt::format("{}, left as it is{}", now, reason);
  }

  // Callers ask for different times: the same fraction of each was tried.
  std::string share_text() const {
    const std::string callers = fmt::format("any of its {} callers", value_.value.callers.size());
    if (value_.proposed == Duration::zero()) return fmt::format("no time at all for {}", callers);
    return fmt::format("{:.3g} times what {} asks for",
                       static_cast<double>(value_.proposed.count()) /
                           static_cast<double>(value_.value.most.count()),
                       callers);
  }

  std::string proposed_text() const {
    const bool is_over_at_once = value_.is_unneeded && value_.value.is_never_when_zero();
    return is_over_at_once ? "over at once" : value_text(value_.proposed);
  }

  bool did_something_smaller_fail(const BalancedValue::AtLoad& at) const {
    return std::ranges::any_of(report_.tried, [&](const TriedSetting& tried) {
      return tried.load == at.load && tried.verdict == TriedSetting::Verdict::fails &&
             index_ < tried.values.size() && tried.values[index_] < at.smallest;
    });
  }

  void tell_load(const BalancedValue::AtLoad& at) {
    std::string text = fmt::format("{}: {} held", to_string(at.load), value_text(at.smallest));
    if (at.fails)
      text += fmt::format(", {} is the largest that did not", value_text(*at.fails));
    else if (!did_something_smaller_fail(at))
      text += ", and so did all else that was tried";
    words_.evidence.push_back(text);
  }

  void tell_needed(const Needed& needed) {
    const bool is_own_end = needed.call_thread.empty();
    std::string text = fmt::format(
        "{} came after {} in the median of {}, after {} at the latest",
        is_own_end ? "what it waits for" : fmt::format("really waits for {}: that", event_text()),
        format_duration(needed.median), counted(needed.times, is_own_end ? "visit" : "run"),
        format_duration(needed.longest));
    if (needed.at_tolerance > Duration::zero())
      text += fmt::format("; estimated from these times, {:g} % of {} need more than {}",
                          report_.tolerance * 100, is_own_end ? "visits" : "runs",
                          format_duration(needed.at_tolerance));
    words_.evidence.push_back(one_line(text));
  }

  std::string event_text() const {
    const Needed& needed = *value_.needed;
    const std::string place =
        needed.call_location.empty() ? to_string(needed.call) : needed.call_location;
    if (needed.call == SiteName()) return fmt::format("the end of thread `{}`", needed.call_thread);
    std::string text = needed.call.api.empty() ? place : needed.call.api + " at " + place;
    if (!needed.call_thread.empty()) text += fmt::format(" in thread `{}`", needed.call_thread);
    return text;
  }

  void tell_advice() {
    if (value_.is_unneeded && value_.value.is_never_when_zero())
      words_.advice.push_back(
          "The test passes when this is over at once: either nothing needs it, or it gives "
          "something time that must NOT happen. In the source 0 means never: write a short time.");
    else if (value_.is_unneeded)
      words_.advice.push_back(
          "The test passes with no time here at all: either nothing needs it, and it can go, or it "
          "gives something time that must NOT happen, and then a shorter wait looks less closely.");
    else if (value_.may_weaken())
      words_.advice.push_back(
          "Nothing ended this wait early in any run: if it is there to show that something does "
          "NOT "
          "happen, a shorter one shows less.");
    if (value_.value.use() == TimeUse::timeout && value_.change != Change::raise)
      words_.advice.push_back(
          "A time-out that ends early costs no time: a shorter one only tells sooner that "
          "something "
          "is wrong.");
    if (value_.change == Change::raise)
      words_.advice.push_back(
          fmt::format("It is too short for the tolerance. A longer one takes more time {}.",
                      value_.value.use() == TimeUse::wait ? "in every run, which a wait for the "
                                                            "event itself would not"
                                                          : "only in runs that need it"));
    if (is_needed_sleep()) tell_what_to_wait_for();
  }

  bool is_needed_sleep() const {
    const bool was_searched = value_.change == Change::shorten || value_.change == Change::keep;
    return value_.value.is_sleep() && was_searched && !value_.is_unneeded;
  }

  void tell_what_to_wait_for() {
    if (value_.needed && !value_.needed->call_thread.empty()) {
      words_.advice.push_back(one_line(
          fmt::format("Better than a shorter sleep is none: wait for {} itself, which holds on a "
                      "machine of any speed. `unflake repair` is for such changes; it is not in "
                      "this version yet.",
                      event_text())));
    } else if (std::ranges::any_of(value_.loads,
                                   [](const auto& at) { return at.fails.has_value(); })) {
      words_.advice.push_back(
          "Something needs this sleep; which event it is was not seen. A wait for that event would "
          "hold on every machine, a sleep holds on those that are as fast as this one.");
    }
  }

  void tell_source(const ValueInSource& source) {
    words_.place = one_line(fmt::format("{}:{}", source.file, source.line));
    if (!value_.is_changed()) return;
    if (!source.can_be_edited()) {
      words_.place += one_line(": not edited: " + (source.why_not.empty()
                                                       ? "no expression with this value was found"
                                                       : source.why_not));
      return;
    }
    words_.old_line = one_line(source.text);
    const size_t at = source.text.find(source.old_text);
    const bool is_plain =
        at != std::string::npos && source.text.find(source.old_text, at + 1) == std::string::npos;
    std::string edited = is_plain ? source.text : source.old_text;
    edited.replace(is_plain ? at : 0, source.old_text.size(), source.new_text);
    if (!is_plain) words_.old_line = one_line(source.old_text);
    words_.new_line = one_line(edited);
    if (!source.caution.empty()) words_.caution = one_line("mind: " + source.caution);
  }

  const BalanceReport& report_;
  const size_t index_;
  const BalancedValue& value_;
  BalancedValueWords words_;
};

}  // namespace

std::string title_of(const TimeValue& value) {
  const std::string place = value.location.empty() ? to_string(value.site) : value.location;
  return value.site.api.empty() ? place : fmt::format("{}: {}", place, value.site.api);
}

std::vector<std::string> facts_of(const TimeValue& value) {
  std::vector<std::string> facts{
      fmt::format("asks for {}; {} in {}, {} spent here in a run", asked_text(value),
                  counted(static_cast<long long>(value.visits), "visit"),
                  counted(static_cast<long long>(value.runs), "run"),
                  format_duration(value.spent_per_run())),
      ends_text(value)};
  if (const std::string room = room_text(value); !room.empty()) facts.push_back(room);
  add_callers(value, facts);
  return facts;
}

BalancedValueWords words_of(const BalanceReport& report, size_t value) {
  return ValueWording(report, value)();
}

}  // namespace unflake
