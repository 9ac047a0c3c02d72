
#include <algorithm>
#include <map>

#include "store/postgres/pg_connection.h"
#include "store/postgres/pg_parts.h"
#include "store/summary.h"
#include "store/values.h"
#include "util/text.h"

namespace unflake {
namespace {

Totals read_totals(PgConnection& connection, const std::vector<int64_t>& tests) {
  Totals totals;
  const PgRows folded = connection.run(
      "SELECT test, outcome, signature, runs, sum_us, min_us, max_us, first_us, first_session,"
      " last_us, last_session FROM totals WHERE test = ANY ($1::bigint[])",
      tests);
  for (int row = 0; row < folded.size(); ++row) {
    const TotalKey key{folded.integer(row, 0), folded.integer(row, 1), folded.integer(row, 2)};
    totals.totals[key].merge({.runs = sane_count(folded.integer(row, 3)),
                              .sum_us = folded.real(row, 4),
                              .min_us = folded.integer(row, 5),
                              .max_us = folded.integer(row, 6),
                              .first_us = folded.integer(row, 7),
                              .first_session = folded.integer(row, 8),
                              .last_us = folded.integer(row, 9),
                              .last_session = folded.integer(row, 10)});
  }
  const PgRows fresh = connection.run(
      "SELECT " UNFLAKE_RUN_COLUMNS " FROM fresh_runs WHERE test = ANY ($1::bigint[])", tests);
  for (int row = 0; row < fresh.size(); ++row) totals.add(read_run(fresh, row));
  return totals;
}

// What the summaries of several tests need beside the totals.
class Details {
 public:
  Details(PgConnection& connection, const Totals& totals)
      : connection_(connection), totals_(totals) {}

  void read_durations(const std::vector<int64_t>& tests) {
    const PgRows rows = connection_.run(
        "SELECT test, outcome, duration_us FROM runs WHERE test = ANY ($1::bigint[])", tests);
    for (int row = 0; row < rows.size(); ++row)
      durations_[rows.integer(row, 0)].add(rows.integer(row, 1), rows.integer(row, 2));
  }

  void read_histograms(const std::vector<int64_t>& tests) {
    const PgRows rows = connection_.run(
        "SELECT test, failing, bucket, runs FROM histograms WHERE test = ANY ($1::bigint[])",
        tests);
    for (int row = 0; row < rows.size(); ++row)
      histograms_[{rows.integer(row, 0), rows.integer(row, 1) != 0}].add(
          static_cast<int>(rows.integer(row, 2)), sane_count(rows.integer(row, 3)));
  }

  void read_failures(const std::vector<int64_t>& signatures, const std::vector<int64_t>& sessions) {
    const PgRows failures = connection_.run("SELECT id, " UNFLAKE_FAILURE_COLUMNS
                                            " FROM signatures WHERE id = ANY ($1::bigint[])",
                                            signatures);
    for (int row = 0; row < failures.size(); ++row)
      failures_[failures.integer(row, 0)] = {failures.text(row, 1), read_failure(failures, row, 2)};
    const PgRows commits = connection_.run(
        "SELECT id, commit_id FROM sessions WHERE id = ANY ($1::bigint[])", sessions);
    for (int row = 0; row < commits.size(); ++row)
      commits_[commits.integer(row, 0)] = commits.text(row, 1);
  }

  void set_quantiles(int64_t test, bool exact, TestSummary& summary) {
    if (exact) return set_exact_quantiles(std::move(durations_[test]), summary);
    const auto both = [&](bool failing) {
      Histogram histogram = totals_.durations_of(test, failing);
      for (const auto& [bucket, runs] : histograms_[{test, failing}].buckets())
        histogram.add(bucket, runs);
      return histogram;
    };
    set_approximate_quantiles(both(false), both(true), summary);
  }

  SignatureSummary describe(const TotalKey& key, const Total& total) {
    SignatureSummary summary = signature_summary_of(key, total);
    summary.first_commit = commits_[total.first_session];
    summary.last_commit = commits_[total.last_session];
    std::tie(summary.signature, summary.failure) = failures_[key.signature];
    return summary;
  }

 private:
  PgConnection& connection_;
  const Totals& totals_;
  std::map<int64_t, MeasuredDurations> durations_;
  std::map<HistogramKey, Histogram> histograms_;
  std::map<int64_t, std::pair<std::string, Failure>> failures_;
  std::map<int64_t, std::string> commits_;
};

struct Draft {
  int64_t row = 0;
  TestSummary summary;
  bool exact = false;
  std::vector<std::pair<TotalKey, Total>> failures;
};

std::vector<Draft> draft(const std::vector<NamedTest>& tests, const Totals& totals,
                         int64_t exact_up_to) {
  std::vector<Draft> drafts;
  for (const NamedTest& test : tests) {
    if (totals.of_test(test.row).empty()) continue;
    Draft draft;
    draft.row = test.row;
    draft.summary = summary_of(test.id, totals, test.row);
    draft.exact = draft.summary.runs() <= exact_up_to;
    draft.failures = frequent_failures(totals, test.row, draft.summary);
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

void read_details(const std::vector<Draft>& drafts, Details& details) {
  std::vector<int64_t> exact, approximate, signatures, sessions;
  for (const Draft& draft : drafts) {
    (draft.exact ? exact : approximate).push_back(draft.row);
    for (const auto& [key, total] : draft.failures) {
      signatures.push_back(key.signature);
      sessions.insert(sessions.end(), {total.first_session, total.last_session});
    }
  }
  if (!exact.empty()) details.read_durations(exact);
  if (!approximate.empty()) details.read_histograms(approximate);
  if (!signatures.empty()) details.read_failures(signatures, sessions);
}

// Tests that have failed are few, and the first in a list: only their runs are counted.
constexpr const char* failed_tests = R"sql(
    WITH failed AS MATERIALIZED (
      SELECT test FROM totals WHERE outcome NOT IN (0, 4)
      UNION SELECT test FROM fresh_runs WHERE outcome NOT IN (0, 4))
    SELECT id, target, name,
           sum(CASE WHEN outcome IN (0, 4) THEN 0 ELSE runs END),
           sum(CASE WHEN outcome = 4 THEN 0 ELSE runs END)
    FROM (SELECT test, outcome, runs FROM totals JOIN failed USING (test)
          UNION ALL
          SELECT test, outcome, 1 FROM fresh_runs JOIN failed USING (test)) AS sums
    JOIN tests ON id = test
    WHERE project = $1::bigint AND starts_with(target || ':' || name, $2)
    GROUP BY id, target, name)sql";

constexpr const char* other_tests = R"sql(
    DECLARE other_tests NO SCROLL CURSOR FOR
    SELECT id, target, name, 0, 0 FROM tests
    WHERE project = $1::bigint AND starts_with(target || ':' || name, $2)
      AND id IN (SELECT test FROM totals UNION ALL SELECT test FROM fresh_runs)
      AND id NOT IN (SELECT test FROM totals WHERE outcome NOT IN (0, 4)
                     UNION ALL SELECT test FROM fresh_runs WHERE outcome NOT IN (0, 4))
    ORDER BY target COLLATE "C", name COLLATE "C")sql";
constexpr const char* next_tests = "FETCH 1000 FROM other_tests";

// What every match of a glob begins with, as far as it is stored as it stands.
std::string plain_beginning(const std::string& pattern) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7f && c != '*' && c != '?'; };
  return {pattern.begin(), std::ranges::find_if_not(pattern, is_plain)};
}

struct RankedTest {
  NamedTest test;
  double failure_rate = 0;
};

void add_matching(const PgRows& rows, const std::string& pattern, std::vector<RankedTest>& ranked) {
  for (int row = 0; row < rows.size(); ++row) {
    NamedTest test{rows.integer(row, 0), {rows.text(row, 1), rows.text(row, 2)}};
    if (!glob_match(pattern, to_string(test.id))) continue;
    const int64_t failures = sane_count(rows.integer(row, 3)), runs = rows.integer(row, 4);
    ranked.push_back({std::move(test), sure_failure_rate(failures, sane_count(runs))});
  }
}

void add_others(PgConnection& connection, int64_t project, const std::string& pattern, size_t most,
                std::vector<RankedTest>& ranked) {
  connection.run(other_tests, project, plain_beginning(pattern));
  PgRows rows = connection.run(next_tests);
  for (; !rows.empty() && ranked.size() < most; rows = connection.run(next_tests))
    add_matching(rows, pattern, ranked);
  connection.run("CLOSE other_tests");
}

}  // namespace

std::vector<NamedTest> rank_tests(PgConnection& connection, int64_t project,
                                  const std::string& pattern, size_t most) {
  std::vector<RankedTest> ranked;
  add_matching(connection.run(failed_tests, project, plain_beginning(pattern)), pattern, ranked);
  if (ranked.size() < most) add_others(connection, project, pattern, most, ranked);
  std::ranges::sort(ranked, [](const RankedTest& a, const RankedTest& b) {
    return std::tie(b.failure_rate, a.test.id) < std::tie(a.failure_rate, b.test.id);
  });
  std::vector<NamedTest> tests;
  for (RankedTest& one : ranked) tests.push_back(std::move(one.test));
  return tests;
}

std::vector<TestSummary> summarise_tests(PgConnection& connection,
                                         const std::vector<NamedTest>& tests, int64_t exact_up_to) {
  std::vector<int64_t> rows;
  for (const NamedTest& test : tests) rows.push_back(test.row);
  const Totals totals = read_totals(connection, rows);
  std::vector<Draft> drafts = draft(tests, totals, exact_up_to);
  Details details(connection, totals);
  read_details(drafts, details);
  std::vector<TestSummary> summaries;
  for (Draft& draft : drafts) {
    details.set_quantiles(draft.row, draft.exact, draft.summary);
    for (const auto& [key, total] : draft.failures)
      draft.summary.signatures.push_back(details.describe(key, total));
    summaries.push_back(std::move(draft.summary));
  }
  return summaries;
}

namespace {

// Up to so many runs are read one by one for exact quantiles; the tests of a list share them.
constexpr int64_t exact_runs = 10'000;

// More runs than this are not counted one by one: it would take longer than people wait.
constexpr int64_t most_counted = 300'000;

std::vector<NamedTest> look_up(PgConnection& connection, int64_t project,
                               std::span<const TestId> tests) {
  std::vector<std::string> targets, names;
  for (const TestId& test : tests) {
    targets.push_back(test.target);
    names.push_back(test.name);
  }
  const PgRows rows = connection.run(R"sql(
      SELECT number, id FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS wanted
             (target, name, number)
      JOIN tests ON project = $1::bigint AND md5(tests.target) = md5(wanted.target)
        AND md5(tests.name) = md5(wanted.name)
      ORDER BY number)sql",
                                     project, targets, names);
  std::vector<NamedTest> found;
  for (int row = 0; row < rows.size(); ++row)
    found.push_back({rows.integer(row, 1), tests[static_cast<size_t>(rows.integer(row, 0) - 1)]});
  return found;
}

}  // namespace

std::optional<TimePoint> PgReader::find_session(const std::string& uuid) {
  const PgRows rows = connection_.run(
      "SELECT started_us FROM sessions WHERE md5(uuid) = md5($1) AND project = $2::bigint", uuid,
      project_);
  if (rows.empty()) return std::nullopt;
  return to_time(rows.integer(0, 0));
}

std::vector<TestSummary> PgReader::summarise(const std::string& pattern, size_t most) {
  PgTransaction snapshot(connection_, PgAccess::read);
  std::vector<NamedTest> tests = rank_tests(connection_, project_, pattern, most);
  tests.resize(std::min(tests.size(), most));
  const auto count = std::max<int64_t>(static_cast<int64_t>(tests.size()), 1);
  return unflake::summarise_tests(connection_, tests, exact_runs / count);
}

std::optional<TestSummary> PgReader::summarise_test(const TestId& id) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const auto test = find_test(id);
  if (!test) return std::nullopt;
  auto summaries = unflake::summarise_tests(connection_, {{*test, id}}, exact_runs);
  if (summaries.empty()) return std::nullopt;
  return std::move(summaries[0]);
}

std::vector<TestSummary> PgReader::summarise_tests(std::span<const TestId> tests) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const auto count = std::max<int64_t>(static_cast<int64_t>(tests.size()), 1);
  return unflake::summarise_tests(connection_, look_up(connection_, project_, tests),
                                  exact_runs / count);
}

std::vector<RecentRun> PgReader::recent_runs(const TestId& id, size_t most) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const auto test = find_test(id);
  if (!test) return {};
  const PgRows rows = connection_.run(R"sql(
      WITH newest AS (
        SELECT * FROM runs WHERE test = $1::bigint
        ORDER BY started_us DESC, session DESC, attempt DESC LIMIT $2::bigint)
      SELECT newest.started_us, outcome, duration_us, attempt, signatures.signature, commit_id,
             branch, machine
      FROM newest
      LEFT JOIN sessions ON sessions.id = session
      LEFT JOIN signatures ON signatures.id = newest.signature
      ORDER BY newest.started_us DESC, session DESC, attempt DESC)sql",
                                      *test, std::min<size_t>(most, INT32_MAX));
  return recent_runs_in(rows);
}

std::vector<RecentRun> PgReader::recent_trials(const TestId& id, const std::string& purpose,
                                               size_t most) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const auto test = find_test(id);
  if (!test) return {};
  return unflake::recent_trials(connection_, *test, purpose, std::min<size_t>(most, INT32_MAX));
}

std::vector<TestId> PgReader::find_tests(const std::string& pattern, size_t most) {
  const PgRows rows = connection_.run(
      "SELECT target, name FROM tests WHERE project = $1::bigint"
      " ORDER BY target COLLATE \"C\", name COLLATE \"C\"",
      project_);
  std::vector<TestId> tests;
  for (int row = 0; row < rows.size() && tests.size() < most; ++row) {
    TestId id{rows.text(row, 0), rows.text(row, 1)};
    if (glob_match(pattern, to_string(id))) tests.push_back(std::move(id));
  }
  return tests;
}

std::optional<std::string> PgReader::latest_output(const TestId& id, const std::string& signature) {
  const auto test = find_test(id);
  if (!test) return std::nullopt;
  const PgRows rows = connection_.run(R"sql(
      SELECT output FROM outputs
      WHERE test = $1::bigint
        AND signature = (SELECT id FROM signatures WHERE md5(signature) = md5($2))
      ORDER BY started_us DESC LIMIT 1)sql",
                                      *test, signature);
  if (rows.empty()) return std::nullopt;
  return rows.bytes(0, 0);
}

RunCounts PgReader::count_runs(const TestId& id, const std::string& signature,
                               const Window& window) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const auto test = find_test(id);
  if (!test) return {};
  const PgRows rows = connection_.run(R"sql(
      SELECT count(*) FILTER (WHERE plan = 0 AND outcome = 0),
             count(*) FILTER (WHERE plan = 0 AND outcome NOT IN (0, 4)),
             count(*) FILTER (WHERE plan = 0 AND outcome NOT IN (0, 4) AND signature =
               (SELECT id FROM signatures WHERE md5(signature) = md5($4))),
             max(started_us) FILTER (WHERE plan = 0 AND outcome NOT IN (0, 4)),
             count(*)
      FROM (SELECT started_us, outcome, signature, plan FROM runs
            WHERE test = $1::bigint AND started_us >= $2::bigint AND started_us < $3::bigint
            ORDER BY started_us DESC LIMIT $5::bigint) AS newest)sql",
                                      *test, to_microseconds(window.from),
                                      to_microseconds(window.until), signature, most_counted);
  RunCounts counts{.passes = rows.integer(0, 0),
                   .failures = rows.integer(0, 1),
                   .with_signature = rows.integer(0, 2),
                   .last_failure = std::nullopt,
                   .cut = rows.integer(0, 4) >= most_counted};
  if (!rows.is_null(0, 3)) counts.last_failure = to_time(rows.integer(0, 3));
  return counts;
}

std::optional<LastFailures> PgReader::last_failures(const SessionQuestion& question) {
  PgTransaction snapshot(connection_, PgAccess::read);
  const PgRows sessions = connection_.run(R"sql(
      SELECT id, started_us, ended_us, command_line FROM sessions
      WHERE project = $1::bigint AND starts_with(command_line, $2)
        AND ($3 = '' OR machine = $3) AND ($4 = '' OR build = $4)
      ORDER BY started_us DESC, id DESC LIMIT $5::bigint)sql",
                                          project_, question.command, question.machine,
                                          question.build, LastFailuresReader::most_sessions);
  constexpr const char* tests_sql = R"sql(
    SELECT target, name, max((outcome NOT IN (0, 4))::int)
    FROM session_totals AS sums JOIN tests ON tests.project = $2::bigint
    JOIN runs ON runs.test = tests.id AND runs.session = sums.session
     AND runs.started_us BETWEEN sums.first_us AND sums.last_us
    WHERE sums.session = $1::bigint AND plan = 0 AND ($3 = '' OR target = $3)
    GROUP BY target, name ORDER BY target COLLATE "C", name COLLATE "C")sql";
  LastFailuresReader reader(question.target);
  for (int row = 0; row < sessions.size(); ++row) {
    SessionTests session{
        to_time(sessions.integer(row, 1)), sessions.text(row, 3), !sessions.is_null(row, 2), {}};
    const PgRows tests =
        connection_.run(tests_sql, sessions.integer(row, 0), project_, question.target);
    for (int test = 0; test < tests.size(); ++test)
      session.tests.push_back(
          {{tests.text(test, 0), tests.text(test, 1)}, tests.integer(test, 2) != 0});
    if (!reader.take(session)) break;
  }
  return reader.result();
}

std::optional<int64_t> PgReader::find_test(const TestId& test) {
  const PgRows rows = connection_.run(
      "SELECT id FROM tests WHERE project = $1::bigint AND md5(target) = md5($2)"
      " AND md5(name) = md5($3)",
      project_, test.target, test.name);
  if (rows.empty()) return std::nullopt;
  return rows.integer(0, 0);
}

}  // namespace unflake
