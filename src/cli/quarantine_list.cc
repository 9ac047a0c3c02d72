#include <fmt/format.h>

#include "cli/quarantine_command.h"
#include "lifecycle/clean_runs.h"
#include "report/style.h"
#include "report/table.h"
#include "report/timestamp.h"
#include "stats/intervals.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* help =
    R"(Lists what is in the quarantine: how many days are left, in how many builds the failure was
suppressed, when it was last seen, how many runs since then were clean and what rate these leave
open, and which entries may be lifted or are stale.

SUPPRESSED IN counts the builds since the entry began that would have failed by this failure alone.
One of them may still have failed by another test.)";

constexpr std::chrono::days stale_after{30};

struct ListedEntry {
  QuarantineEntry entry;
  int64_t days_left = 0;
  std::optional<QuarantinedPast> past;  // none: history does not tell
  int64_t suppressed_builds = 0;
  bool may_be_lifted = false;
  bool stale = false;  // its test has not run for long
};

Result<ListedEntry> looked_up(const QuarantineEntry& entry, const QuarantineDesk& desk,
                              Store* store) {
  ListedEntry listed;
  listed.entry = entry;
  listed.days_left = (entry.expires - desk.today).count();
  if (!store) return listed;
  const auto past = past_of(*store, entry);
  if (!past) return past.error();
  listed.past = *past;
  const auto builds = store->count_suppressed_builds(entry.test, entry.signature,
                                                     {TimePoint(entry.since), TimePoint::max()});
  if (!builds) return builds.error();
  listed.suppressed_builds = *builds;
  LiftRule rule;
  rule.least_runs = desk.config.ci.lift_runs.value_or(static_cast<int>(rule.least_runs));
  listed.may_be_lifted = may_be_lifted(past->runs, rule);
  listed.stale = past->last_run.value_or(TimePoint(entry.since)) + stale_after < desk.now;
  return listed;
}

Result<std::vector<ListedEntry>> look_up_all(const QuarantineDesk& desk) {
  const auto quarantine = load_quarantine(desk.file);
  if (!quarantine) return quarantine.error();
  const auto store = desk.read_history();
  if (!store) return store.error();
  std::vector<ListedEntry> all;
  for (const QuarantineEntry& entry : quarantine->entries()) {
    auto listed = looked_up(entry, desk, store->get());
    if (!listed) return listed.error();
    all.push_back(std::move(*listed));
  }
  return all;
}

std::string left_text(int64_t days) {
  return days < 0 ? "expired" : fmt::format("{}", days);
}

std::string bound_text(const CleanRuns& runs) {
  if (runs.clean == 0) return "0";
  return fmt::format("{} (below {:.1f} %)", runs.clean,
                     100 * upper_bound_zero_failures(runs.clean));
}

void print_table(Page& page, const std::vector<ListedEntry>& all) {
  if (all.empty()) return page.print("nothing is in quarantine\n");
  Table table({"TEST", "SIGNATURE", "UNTIL", "DAYS LEFT", "OWNER", "SUPPRESSED IN",
               "LAST SEEN (UTC)", "CLEAN RUNS SINCE"});
  for (const ListedEntry& listed : all) {
    const QuarantineEntry& entry = listed.entry;
    const bool seen = listed.past && listed.past->last_seen;
    table.add({to_string(entry.test), entry.signature, format_day(entry.expires),
               left_text(listed.days_left), entry.owner.empty() ? "-" : entry.owner,
               listed.past ? counted(listed.suppressed_builds, "build") : "-",
               seen ? timestamp_in_minutes(*listed.past->last_seen) : "-",
               listed.past ? bound_text(listed.past->runs) : "-"});
  }
  page.print("{}", table.text());
  for (const ListedEntry& listed : all) {
    const std::string test = printable(to_string(listed.entry.test));
    if (listed.may_be_lifted)
      page.print("\n{} may be lifted: {}\n  next: unflake quarantine lift {} --signature {}\n",
                 test, clean_runs_text(listed.past->runs),
                 shell_quote(to_string(listed.entry.test)), listed.entry.signature);
    if (listed.stale)
      page.print("\n{} is stale: it has not run for {} days\n", test, stale_after.count());
  }
}

Json json_of(const ListedEntry& listed) {
  const QuarantineEntry& entry = listed.entry;
  Json object{{"test", printable(to_string(entry.test))}, {"signature", entry.signature},
              {"failure", printable(entry.failure)},      {"reason", printable(entry.reason)},
              {"owner", printable(entry.owner)},          {"issue", printable(entry.issue)},
              {"since", format_day(entry.since)},         {"expires", format_day(entry.expires)},
              {"commit", printable(entry.commit)},        {"days_left", listed.days_left},
              {"expired", listed.days_left < 0}};
  if (!listed.past) return object;
  const CleanRuns& runs = listed.past->runs;
  object["suppressed_builds"] = listed.suppressed_builds;
  if (listed.past->last_seen) object["last_seen"] = timestamp_in_seconds(*listed.past->last_seen);
  object["clean_runs"] = runs.clean;
  object["clean_rate_below_95"] = upper_bound_zero_failures(runs.clean);
  object["earlier_failures"] = runs.earlier_failures;
  object["earlier_runs"] = runs.earlier_runs;
  object["may_be_lifted"] = listed.may_be_lifted;
  object["stale"] = listed.stale;
  return object;
}

void print_json(Page& page, const std::vector<ListedEntry>& all) {
  Json entries = Json::array();
  for (const ListedEntry& listed : all) entries.push_back(json_of(listed));
  const Json whole{{"format", 1}, {"entries", std::move(entries)}};
  page.print("{}\n", json_text(whole, 2));
}

}  // namespace

int quarantine_list(const Words& words) {
  QuarantineWords common;
  bool json = false;
  CommandLine line("quarantine list", help);
  line.flag("--json", json, "JSON instead of a table");
  common.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto desk = open_desk(common);
  if (!desk) return report_error(desk.error());
  const auto all = look_up_all(*desk);
  if (!all) return report_error(all.error());
  Page page;
  if (json)
    print_json(page, *all);
  else
    print_table(page, *all);
  return page.write_out();
}

}  // namespace unflake
