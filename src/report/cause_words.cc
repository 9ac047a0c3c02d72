#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/cause_report.h"
#include "report/style.h"
#include "report/timestamp.h"
#include "stats/rates.h"
#include "util/text.h"

namespace unflake {
namespace {

// A commit is letters and digits; what else a build server put there is left out.
std::string commit_text(const std::string& commit) {
  std::string plain;
  for (const char c : commit.substr(0, 10))
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) plain += c;
  return plain.empty() ? "unknown commit" : "commit " + plain;
}

std::string builds_text(const ReportedCause& cause) {
  if (cause.most_builds == 0) return "none, it was seen in local runs only";
  const std::string number =
      cause.fewest_builds == cause.most_builds
          ? counted(cause.most_builds, "build")
          : fmt::format("{} to {} builds", cause.fewest_builds, cause.most_builds);
  if (cause.suppressed_builds == 0) return number + ", none kept from failing by quarantine";
  return fmt::format("{}, {} kept from failing by quarantine", number,
                     counted(cause.suppressed_builds, "failure"));
}

std::string rate_of(const ReportedCause& cause) {
  const bool cut =
      std::ranges::any_of(cause.tests, [](const ReportedTest& test) { return test.runs_cut; });
  return rate_text(cause.failures, cause.runs) + (cut ? ", of the newest runs" : "");
}

std::string owners_of(const ReportedCause& cause) {
  std::set<std::string> owners;
  for (const ReportedTest& test : cause.tests)
    if (!test.owner.empty()) owners.insert(test.owner);
  return join({owners.begin(), owners.end()}, ", ");
}

std::string quarantine_text(const ReportedCause& cause, Day today) {
  std::optional<Day> until;
  size_t inside = 0;
  for (const ReportedTest& test : cause.tests) {
    if (!test.quarantined_until) continue;
    ++inside;
    until = std::min(until.value_or(*test.quarantined_until), *test.quarantined_until);
  }
  if (inside == 0) return "no";
  const char* what = *until < today ? "expired on" : "until";
  return fmt::format("{} of {}, {} {}", inside,
                     counted(static_cast<long long>(cause.tests.size()), "failure"), what,
                     format_day(*until));
}

std::string state_text(const ReportedCause& cause) {
  std::string text = cause.is_open ? "open" : "closed";
  if (cause.reopened > 0) text += fmt::format(", came back {}", counted(cause.reopened, "time"));
  return text;
}

}  // namespace

std::vector<CauseFact> facts_of(const ReportedCause& cause, Day today) {
  std::vector<CauseFact> facts{
      {"Rate", rate_of(cause), false},
      {"Since",
       fmt::format("{}, {} UTC", commit_text(cause.first_commit),
                   timestamp_in_minutes(cause.first)),
       false},
      {"Last seen", timestamp_in_minutes(cause.last) + " UTC", false},
      {"Builds hit", builds_text(cause), false},
      {"Time wasted", format_duration(cause.wasted) + " in failing runs and in trying again",
       false},
      {"Quarantined", quarantine_text(cause, today), false},
      {"State", state_text(cause), false}};
  if (const std::string owners = owners_of(cause); !owners.empty())
    facts.push_back({"Owner", owners, true});
  if (!cause.issue.empty()) facts.push_back({"Issue", cause.issue, true});
  return facts;
}

std::string evidence_of(const CauseReport& report) {
  return fmt::format("{} in {} from {} to {} (UTC); {} of these builds had a flaky failure",
                     counted(report.runs, "run"), counted(report.builds, "build"),
                     format_day(report.first_day), format_day(report.last_day),
                     report.flaky_builds);
}

}  // namespace unflake
