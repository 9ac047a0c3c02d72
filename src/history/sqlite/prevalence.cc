#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "history/sqlite/flaky_incidents.h"
#include "history/sqlite/flaky_reader.h"
#include "history/sqlite/totals.h"
#include "history/values.h"

namespace unflake {
namespace {

struct Build {
  int64_t first_us = INT64_MAX, last_us = INT64_MIN, failures = 0;

  int64_t took_us() const { return last_us > first_us ? last_us - first_us : 0; }
};

// A stored number may be anything; this keeps differences and sums of them from overflowing.
int64_t sane_time(int64_t microseconds) {
  return std::clamp(microseconds, INT64_MIN / 4, INT64_MAX / 4);
}

void add_builds(Database& database, int64_t project, const Window& window, Prevalence& sums) {
  Statement sessions(database, R"sql(
      SELECT build, started_us, last_us, runs, failures
      FROM sessions CROSS JOIN session_totals ON session = id
      WHERE project = ? AND started_us >= ? AND started_us < ?)sql");
  std::unordered_map<std::string, Build> builds;
  for (Query query(sessions, project, to_microseconds(window.from), to_microseconds(window.until));
       query.next();) {
    sums.runs += sane_count(query.integer(3));
    if (query.text(0).starts_with(local_build)) continue;
    Build& build = builds[query.text(0)];
    build.first_us = std::min(build.first_us, sane_time(query.integer(1)));
    build.last_us = std::max(build.last_us, sane_time(query.integer(2)));
    build.failures += sane_count(query.integer(4));
  }
  std::vector<int64_t> took;
  for (const auto& [name, build] : builds) {
    took.push_back(build.took_us());
    sums.failed_builds += build.failures > 0;
  }
  sums.builds = static_cast<int64_t>(builds.size());
  if (took.empty()) return;
  const auto median = took.begin() + static_cast<ptrdiff_t>((took.size() - 1) / 2);
  std::nth_element(took.begin(), median, took.end());
  sums.median_build = Duration(*median);
}

void add_flakiness(Database& database, int64_t project, const Window& window, Prevalence& sums) {
  std::set<int64_t> builds, tests;
  std::map<std::pair<int64_t, int64_t>, bool> failures;  // of a test in a build: all suppressed?
  for_each_flaky_incident(database, project, window, [&](const FlakyIncident& incident) {
    tests.insert(incident.test);
    if (!incident.in_build) return;
    builds.insert(incident.build);
    bool& suppressed = failures.try_emplace({incident.build, incident.test}, true).first->second;
    suppressed = suppressed && incident.suppressed;
  });
  sums.flaky_builds = static_cast<int64_t>(builds.size());
  sums.flaky_tests = static_cast<int64_t>(tests.size());
  sums.flaky_failures = static_cast<int64_t>(failures.size());
  sums.suppressed =
      std::ranges::count_if(failures, [](const auto& failure) { return failure.second; });
}

// Which tests ran in the window. The totals know when a test ran first and last; only a test that
// ran before and after the window has to be looked up.
std::unordered_set<int64_t> tests_in(Database& database, const Window& window) {
  const int64_t from = to_microseconds(window.from), until = to_microseconds(window.until);
  std::unordered_set<int64_t> tests, around;
  Statement totals(database, "SELECT test, first_us, last_us FROM totals");
  for (Query query(totals); query.next();) {
    const int64_t first = query.integer(1), last = query.integer(2);
    if ((first >= from && first < until) || (last >= from && last < until))
      tests.insert(query.integer(0));
    else if (first < from && last >= until)
      around.insert(query.integer(0));
  }
  Statement ran(database,
                "SELECT 1 FROM runs WHERE test = ? AND started_us >= ? AND started_us < ?");
  for (const int64_t test : around)
    if (!tests.contains(test) && Query(ran, test, from, until).next()) tests.insert(test);
  Statement unplaced(database,
                     "SELECT test FROM staged_runs WHERE started_us >= ?1 AND started_us < ?2"
                     " UNION ALL"
                     " SELECT test FROM fresh_runs WHERE started_us >= ?1 AND started_us < ?2");
  for (Query query(unplaced, from, until); query.next();) tests.insert(query.integer(0));
  return tests;
}

std::unordered_map<int64_t, int64_t> count_tests(Database& database, const Window& window) {
  const auto ran = tests_in(database, window);
  std::unordered_map<int64_t, int64_t> counts;
  Statement tests(database, "SELECT id, project FROM tests");
  for (Query query(tests); query.next();)
    counts[query.integer(1)] += ran.contains(query.integer(0));
  return counts;
}

}  // namespace

std::vector<Prevalence> prevalence(Database& database, const Window& window) {
  Transaction snapshot(database, Access::read);
  auto tests = count_tests(database, window);
  std::vector<Prevalence> all;
  Statement projects(database, "SELECT id, name FROM projects ORDER BY name");
  for (Query query(projects); query.next();) {
    const int64_t project = query.integer(0);
    Prevalence sums{.project = query.text(1), .tests = tests[project]};
    add_builds(database, project, window, sums);
    if (sums.runs == 0) continue;
    add_flakiness(database, project, window, sums);
    all.push_back(std::move(sums));
  }
  return all;
}

}  // namespace unflake
