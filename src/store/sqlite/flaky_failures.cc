
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include "store/sqlite/sqlite_parts.h"
#include "store/values.h"

namespace unflake {

void for_each_flaky_incident(Database& database, int64_t project, const Window& window,
                             const std::function<void(const FlakyIncident&)>& take) {
  Statement incidents(database, R"sql(
      SELECT incidents.session, test, signature, outcome, failures, first_us, last_us, wasted_us,
             build, EXISTS (SELECT 1 FROM suppressions AS s WHERE
                            (s.session, s.test, s.signature)
                            = (incidents.session, incidents.test, incidents.signature))
      FROM sessions CROSS JOIN incidents ON incidents.session = sessions.id
      WHERE project = ? AND sessions.started_us >= ? AND sessions.started_us < ? AND flaky = 1
        AND NOT EXISTS (SELECT 1 FROM signatures AS s WHERE s.id = incidents.signature AND kind = ?)
      )sql");
  Numbering builds;
  for (Query query(incidents, project, to_microseconds(window.from), to_microseconds(window.until),
                   code_of(FailureKind::not_started));
       query.next();)
    take({.session = query.integer(0),
          .test = query.integer(1),
          .signature = query.integer(2),
          .outcome = query.integer(3),
          .failures = query.integer(4),
          .first_us = query.integer(5),
          .last_us = query.integer(6),
          .wasted_us = query.integer(7),
          .build = builds.of(query.text(8)),
          .in_build = !query.text(8).starts_with(local_build),
          .suppressed = query.integer(9) != 0});
}

Flakiness::Flakiness(Database& database)
    : database_(database),
      runs_(database),
      same_code_(database, R"sql(
          SELECT other.id FROM sessions AS own JOIN sessions AS other
            ON other.project = own.project AND other.build = own.build
          WHERE own.id = ?1 AND other.id <> ?1
          UNION
          SELECT other.id FROM sessions AS own JOIN sessions AS other
            ON other.project = own.project AND other.commit_id = own.commit_id
          WHERE own.id = ?1 AND other.id <> ?1
            AND own.commit_id <> '' AND own.dirty = 0 AND other.dirty = 0
          ORDER BY 1 DESC)sql"),
      unsettled_(database, "SELECT DISTINCT test FROM incidents WHERE session = ? AND flaky = 0"),
      settle_(database, "UPDATE incidents SET flaky = 1 WHERE session = ? AND test = ?") {}

void Flakiness::settle(int64_t session) {
  const auto others = sessions_with_same_code(session);
  if (others.empty()) return;
  Transaction transaction(database_);
  settle_own_failures(session, others);
  for (const int64_t other : others) settle_failures_of(other, session);
  transaction.commit();
}

std::vector<int64_t> Flakiness::sessions_with_same_code(int64_t session) {
  std::vector<int64_t> sessions;
  for (Query query(same_code_, session); query.next();) sessions.push_back(query.integer(0));
  return sessions;
}

std::vector<int64_t> Flakiness::unsettled_tests(int64_t session) {
  std::vector<int64_t> tests;
  for (Query query(unsettled_, session); query.next();) tests.push_back(query.integer(0));
  return tests;
}

void Flakiness::settle_own_failures(int64_t session, const std::vector<int64_t>& others) {
  for (const int64_t test : unsettled_tests(session))
    if (std::ranges::any_of(others, [&](int64_t other) { return runs_.passed(other, test); }))
      settle_.run(session, test);
}

void Flakiness::settle_failures_of(int64_t other, int64_t session) {
  for (const int64_t test : unsettled_tests(other))
    if (runs_.passed(session, test)) settle_.run(other, test);
}

namespace {

struct Group {
  int64_t test = 0, signature = 0;
  FlakyIncident first, last;
  int64_t runs = 0, wasted_us = 0;
  std::set<int64_t> builds, suppressed_builds;

  void add(const FlakyIncident& incident) {
    const bool is_new = runs == 0;
    if (is_new || incident.first_us < first.first_us) first = incident;
    if (is_new || incident.last_us >= last.last_us) last = incident;
    runs += sane_count(incident.failures);
    wasted_us += std::clamp<int64_t>(incident.wasted_us, 0, int64_t{1} << 50);
    if (!incident.in_build) return;
    builds.insert(incident.build);
    if (incident.suppressed) suppressed_builds.insert(incident.build);
  }
  auto rank() const { return std::pair(builds.size(), runs); }
};

std::vector<Group> group_incidents(Database& database, int64_t project, const Window& window) {
  std::map<std::pair<int64_t, int64_t>, Group> groups;
  for_each_flaky_incident(database, project, window, [&](const FlakyIncident& incident) {
    Group& group = groups[{incident.test, incident.signature}];
    group.test = incident.test;
    group.signature = incident.signature;
    group.add(incident);
  });
  std::vector<Group> all;
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  return all;
}

// Leaves the first `most` ones and those that are equal to the last of them: names decide there.
void keep_first(std::vector<Group>& groups, size_t most) {
  std::ranges::sort(groups, std::greater(), &Group::rank);
  if (groups.size() <= most) return;
  if (most == 0) return groups.clear();
  const auto last = groups[most - 1].rank();
  std::erase_if(groups, [&](const Group& group) { return group.rank() < last; });
}

class Describer {
 public:
  explicit Describer(Database& database)
      : test_(database, "SELECT target, name FROM tests WHERE id = ?"),
        signature_(database,
                   "SELECT signature, kind, file, line, function, expression, message"
                   " FROM signatures WHERE id = ?"),
        commit_(database, "SELECT commit_id FROM sessions WHERE id = ?") {}

  FlakyFailure describe(const Group& group) {
    FlakyFailure failure;
    failure.outcome = outcome_from_code(group.first.outcome);
    failure.runs = group.runs;
    failure.builds = static_cast<int64_t>(group.builds.size());
    failure.suppressed_builds = static_cast<int64_t>(group.suppressed_builds.size());
    failure.wasted = Duration(group.wasted_us);
    failure.first = to_time(group.first.first_us);
    failure.last = to_time(group.last.last_us);
    failure.first_commit = commit_of(group.first.session);
    failure.last_commit = commit_of(group.last.session);
    if (Query query(test_, group.test); query.next()) failure.test = {query.text(0), query.text(1)};
    if (Query query(signature_, group.signature); query.next()) {
      failure.signature = query.text(0);
      failure.failure = {.kind = failure_from_code(query.integer(1)),
                         .file = query.text(2),
                         .line = static_cast<int>(query.integer(3)),
                         .function = query.text(4),
                         .expression = query.text(5),
                         .message = query.text(6)};
    }
    return failure;
  }

 private:
  std::string commit_of(int64_t session) {
    Query query(commit_, session);
    return query.next() ? query.text(0) : "";
  }

  Statement test_, signature_, commit_;
};

}  // namespace

std::vector<FlakyFailure> flaky_failures(Database& database, int64_t project, const Window& window,
                                         size_t most) {
  Transaction snapshot(database, Access::read);
  std::vector<Group> groups = group_incidents(database, project, window);
  keep_first(groups, most);
  Describer describer(database);
  std::vector<FlakyFailure> failures;
  for (const Group& group : groups) failures.push_back(describer.describe(group));
  std::ranges::sort(failures, [](const FlakyFailure& a, const FlakyFailure& b) {
    return std::tie(b.builds, b.runs, a.test, a.signature) <
           std::tie(a.builds, a.runs, b.test, b.signature);
  });
  if (failures.size() > most) failures.resize(most);
  return failures;
}

int64_t count_suppressed_builds(Database& database, int64_t project, const TestId& test,
                                const std::string& signature, const Window& window) {
  Statement builds(database, R"sql(
      SELECT DISTINCT build FROM suppressions
      JOIN tests ON tests.id = suppressions.test
      JOIN signatures ON signatures.id = suppressions.signature
      JOIN sessions ON sessions.id = suppressions.session
      WHERE tests.project = ? AND target = ? AND name = ? AND signatures.signature = ?
        AND sessions.started_us >= ? AND sessions.started_us < ?)sql");
  int64_t count = 0;
  for (Query query(builds, project, test.target, test.name, signature, to_microseconds(window.from),
                   to_microseconds(window.until));
       query.next();)
    count += !query.text(0).starts_with(local_build);
  return count;
}

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
