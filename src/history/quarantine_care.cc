#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "history/gate.h"
#include "stats/intervals.h"
#include "stats/rates.h"
#include "util/text.h"

namespace unflake {
namespace {

Note expiry_warning(const QuarantineEntry& entry, Day today) {
  const std::string test = printable(to_string(entry.test));
  const auto days = (entry.expires - today).count();
  Note note;
  note.level = Note::Level::warning;
  if (days < 0)
    note.text = fmt::format(
        "the quarantine of {} for {} expired after {}: that failure now fails "
        "the build",
        test, entry.signature, format_day(entry.expires));
  else
    note.text = fmt::format("the quarantine of {} for {} expires {} ({})", test, entry.signature,
                            days == 0   ? "today"
                            : days == 1 ? "tomorrow"
                                        : fmt::format("in {} days", days),
                            format_day(entry.expires));
  note.next = days < 0 ? "`unflake quarantine expire` takes out what has expired"
                       : "mend the test, or prolong it with `unflake quarantine add`";
  return note;
}

// A CTest entry may be opened into cases in one session and not in the next.
bool is_part_of(std::string_view part, std::string_view whole) {
  if (!part.starts_with(whole)) return false;
  const unsigned char next = part.size() == whole.size() ? '/' : part[whole.size()];
  return std::isalnum(next) == 0 && next != '_';
}

// Lifted and expired are the ends of a time in quarantine.
std::string end_text(const LifecycleEvent& end) {
  if (end.kind == LifecycleEvent::Kind::expired) return "expired";
  std::string text = "lifted";
  if (!end.commit.empty()) text += " as fixed by " + printable(end.commit);
  if (!end.reason.empty()) text += fmt::format(" ({})", printable(end.reason));
  return text;
}

bool is_about(const LifecycleEvent& event, const TestId& test, std::string_view signature) {
  using Kind = LifecycleEvent::Kind;
  const bool of_quarantine =
      event.kind == Kind::quarantined || event.kind == Kind::lifted || event.kind == Kind::expired;
  return of_quarantine && event.test == test &&
         (event.signature.empty() || event.signature == signature);
}

}  // namespace

std::vector<Note> expiry_warnings(const Quarantine& quarantine, Day today,
                                  const std::string& target, int days) {
  std::vector<Note> notes;
  for (const QuarantineEntry& entry : quarantine.entries()) {
    if (!target.empty() && entry.test.target != target) continue;
    if ((entry.expires - today).count() <= days) notes.push_back(expiry_warning(entry, today));
  }
  return notes;
}

std::vector<QuarantineEntry> gone_entries(const Quarantine& quarantine, const std::string& target,
                                          std::span<const std::string> listed) {
  std::vector<QuarantineEntry> gone;
  for (const QuarantineEntry& entry : quarantine.entries()) {
    if (entry.test.target != target) continue;
    const bool is_there = std::ranges::any_of(listed, [&](const std::string& name) {
      return is_part_of(name, entry.test.name) || is_part_of(entry.test.name, name);
    });
    if (!is_there) gone.push_back(entry);
  }
  return gone;
}

bool may_be_lifted(const CleanRuns& runs, const LiftRule& rule) {
  if (runs.clean < rule.least_runs || runs.earlier_failures == 0) return false;
  const double earlier =
      static_cast<double>(runs.earlier_failures) / static_cast<double>(runs.earlier_runs);
  return upper_bound_zero_failures(runs.clean) * rule.factor <= earlier;
}

std::string clean_runs_text(const CleanRuns& runs) {
  if (runs.clean == 0) return "no run since it was last seen";
  std::string text = fmt::format("0 of {} runs failed: rate below {} at 95 % confidence",
                                 runs.clean, percent(upper_bound_zero_failures(runs.clean)));
  if (runs.earlier_failures == 0) return text;
  const double earlier =
      static_cast<double>(runs.earlier_failures) / static_cast<double>(runs.earlier_runs);
  return text + fmt::format("; before, {} of {} did ({})", runs.earlier_failures, runs.earlier_runs,
                            percent(earlier));
}

std::string past_quarantine(std::span<const LifecycleEvent> events, const TestId& test,
                            std::string_view signature) {
  std::vector<const LifecycleEvent*> past;
  for (const LifecycleEvent& event : events)
    if (is_about(event, test, signature)) past.push_back(&event);
  std::ranges::stable_sort(past, {}, [](const LifecycleEvent* event) { return event->at; });
  std::vector<std::string> times;
  const LifecycleEvent* begun = nullptr;
  for (const LifecycleEvent* event : past) {
    if (event->kind == LifecycleEvent::Kind::quarantined) {
      if (!begun) begun = event;
    } else if (begun) {
      times.push_back(fmt::format("{}..{}, {}", format_day(day_of(begun->at)),
                                  format_day(day_of(event->at)), end_text(*event)));
      begun = nullptr;
    }
  }
  if (times.empty() || begun) return "";
  return "was quarantined " + join(times, "; ");
}

}  // namespace unflake
