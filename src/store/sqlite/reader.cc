
#include <algorithm>
#include <functional>
#include <unordered_map>

#include "store/sqlite/sqlite_parts.h"
#include "store/summary.h"
#include "store/values.h"
#include "util/text.h"

namespace unflake {

Summariser::Summariser(Database& database, const Totals& totals, int64_t exact_up_to)
    : totals_(totals),
      exact_up_to_(exact_up_to),
      database_(database),
      runs_(database, "SELECT " UNFLAKE_RUN_COLUMNS " FROM runs WHERE test = ?"),
      histograms_(database, "SELECT failing, bucket, runs FROM histograms WHERE test = ?"),
      signature_(database,
                 "SELECT signature, kind, file, line, function, expression, message"
                 " FROM signatures WHERE id = ?"),
      commit_(database, "SELECT commit_id FROM sessions WHERE id = ?") {}

TestSummary Summariser::summarise(const TestId& id, int64_t test) {
  TestSummary summary = summary_of(id, totals_, test);
  if (summary.runs() <= exact_up_to_)
    add_exact_quantiles(test, summary);
  else
    add_approximate_quantiles(test, summary);
  add_signatures(test, summary);
  return summary;
}

void Summariser::add_exact_quantiles(int64_t test, TestSummary& summary) {
  MeasuredDurations durations;
  const auto add = [&](const RunRow& run) { durations.add(run.outcome, run.duration_us); };
  for (Query query(runs_, test); query.next();) add(read_run(query));
  for_each_unplaced(database_, test, add);
  set_exact_quantiles(std::move(durations), summary);
}

void Summariser::add_approximate_quantiles(int64_t test, TestSummary& summary) {
  Histogram passes = totals_.durations_of(test, false);
  Histogram failures = totals_.durations_of(test, true);
  for (Query query(histograms_, test); query.next();) {
    Histogram& histogram = query.integer(0) != 0 ? failures : passes;
    histogram.add(static_cast<int>(query.integer(1)), sane_count(query.integer(2)));
  }
  set_approximate_quantiles(passes, failures, summary);
}

void Summariser::add_signatures(int64_t test, TestSummary& summary) {
  for (const auto& [key, total] : frequent_failures(totals_, test, summary))
    summary.signatures.push_back(describe(key, total));
}

SignatureSummary Summariser::describe(const TotalKey& key, const Total& total) {
  SignatureSummary summary = signature_summary_of(key, total);
  summary.first_commit = commit_of(total.first_session);
  summary.last_commit = commit_of(total.last_session);
  Query query(signature_, key.signature);
  if (!query.next()) return summary;
  summary.signature = query.text(0);
  summary.failure = {.kind = failure_from_code(query.integer(1)),
                     .file = query.text(2),
                     .line = static_cast<int>(query.integer(3)),
                     .function = query.text(4),
                     .expression = query.text(5),
                     .message = query.text(6)};
  return summary;
}

std::string Summariser::commit_of(int64_t session) {
  Query query(commit_, session);
  return query.next() ? query.text(0) : "";
}

namespace {

// Up to so many runs are read one by one for exact quantiles; the tests of a list share them.
constexpr int64_t exact_runs = 10'000;

// A list of more tests than this reads all totals at once, instead of test by test.
constexpr size_t few_tests = 200;

// More runs than this are not counted one by one.
constexpr int64_t most_counted = 1'000'000;

struct RunCount {
  int64_t runs = 0, failures = 0;  // without skipped ones

  void add(int64_t outcome_code, int64_t count) {
    const OutcomeKind outcome = outcome_from_code(outcome_code);
    if (outcome != OutcomeKind::skipped) runs += count;
    if (is_failing(outcome)) failures += count;
  }
};

using CountsByTest = std::unordered_map<int64_t, RunCount>;

CountsByTest count_by_test(Database& database) {
  CountsByTest counts;
  Statement placed(database, "SELECT test, outcome, runs FROM totals");
  for (Query query(placed); query.next();)
    counts[query.integer(0)].add(query.integer(1), sane_count(query.integer(2)));
  Statement unplaced(database,
                     "SELECT test, outcome FROM staged_runs UNION ALL"
                     " SELECT test, outcome FROM fresh_runs");
  for (Query query(unplaced); query.next();) counts[query.integer(0)].add(query.integer(1), 1);
  return counts;
}

CountsByTest count_by_test(const Totals& totals) {
  CountsByTest counts;
  for (const auto& [key, total] : totals.totals) counts[key.test].add(key.outcome, total.runs);
  return counts;
}

struct RankedTest {
  int64_t row = 0;
  TestId id;
  double failure_rate = 0;  // at least so high, at 95 % confidence
};

// Least reliable first.
std::vector<RankedTest> rank(Database& database, int64_t project, const CountsByTest& counts,
                             const std::string& pattern) {
  std::vector<RankedTest> tests;
  Statement statement(database,
                      "SELECT id, target, name FROM tests WHERE project = ?"
                      " ORDER BY target, name");
  for (Query query(statement, project); query.next();) {
    const auto count = counts.find(query.integer(0));
    if (count == counts.end()) continue;
    TestId id{query.text(1), query.text(2)};
    if (!glob_match(pattern, to_string(id))) continue;
    const auto [runs, failures] = count->second;
    tests.push_back({count->first, std::move(id), sure_failure_rate(failures, runs)});
  }
  std::stable_sort(tests.begin(), tests.end(), [](const RankedTest& a, const RankedTest& b) {
    return a.failure_rate > b.failure_rate;
  });
  return tests;
}

// The newest of what is kept of a test, from all three tables.
std::vector<RunRow> newest_runs(Database& database, int64_t test, size_t most) {
  std::vector<RunRow> runs;
  for_each_unplaced(database, test, [&](const RunRow& run) { runs.push_back(run); });
  Statement placed(database, "SELECT " UNFLAKE_RUN_COLUMNS
                             " FROM runs WHERE test = ?"
                             " ORDER BY started_us DESC, session DESC, attempt DESC LIMIT ?");
  for (Query query(placed, test, most); query.next();) runs.push_back(read_run(query));
  std::ranges::sort(runs, std::greater(), &RunRow::by_test);
  if (runs.size() > most) runs.resize(most);
  return runs;
}

RecentRun describe(Statement& session, Statement& signature, const RunRow& run) {
  RecentRun recent;
  recent.started = to_time(run.started_us);
  recent.outcome = outcome_from_code(run.outcome);
  recent.duration = Duration(run.duration_us);
  recent.attempt = static_cast<int>(run.attempt);
  if (Query query(session, run.session); query.next()) {
    recent.commit = query.text(0);
    recent.branch = query.text(1);
    recent.machine = query.text(2);
  }
  if (run.signature != 0)
    if (Query query(signature, run.signature); query.next()) recent.signature = query.text(0);
  return recent;
}

struct CountedRuns {
  RunCounts counts;
  int64_t signature = -1;

  void add(const RunRow& run) {
    counts.passes += run.passed_by_itself();
    if (!run.failed_by_itself()) return;
    ++counts.failures;
    counts.with_signature += run.signature == signature;
    const TimePoint started = to_time(run.started_us);
    counts.last_failure = std::max(counts.last_failure.value_or(started), started);
  }
};

}  // namespace

std::optional<TimePoint> Reader::find_session(const std::string& uuid) {
  Statement find(database_, "SELECT started_us FROM sessions WHERE uuid = ? AND project = ?");
  Query query(find, uuid, project_);
  if (!query.next()) return std::nullopt;
  return to_time(query.integer(0));
}

std::vector<TestSummary> Reader::summarise(const std::string& pattern, size_t most) {
  Transaction snapshot(database_, Access::read);
  const bool is_long = most > few_tests;
  Totals totals = is_long ? read_totals(database_) : Totals();
  const CountsByTest counts = is_long ? count_by_test(totals) : count_by_test(database_);
  std::vector<RankedTest> tests = rank(database_, project_, counts, pattern);
  tests.resize(std::min(tests.size(), most));
  const auto count = std::max<int64_t>(static_cast<int64_t>(tests.size()), 1);
  Summariser summariser(database_, totals, exact_runs / count);
  std::vector<TestSummary> summaries;
  for (const RankedTest& test : tests) {
    if (!is_long) totals = read_totals(database_, test.row);
    summaries.push_back(summariser.summarise(test.id, test.row));
  }
  return summaries;
}

std::optional<TestSummary> Reader::summarise_test(const TestId& id) {
  Transaction snapshot(database_, Access::read);
  const auto test = find_test(id);
  if (!test) return std::nullopt;
  const Totals totals = read_totals(database_, *test);
  if (totals.totals.empty()) return std::nullopt;
  return Summariser(database_, totals, exact_runs).summarise(id, *test);
}

std::vector<TestSummary> Reader::summarise_tests(std::span<const TestId> tests) {
  Transaction snapshot(database_, Access::read);
  const bool are_many = tests.size() > few_tests;
  Totals totals = are_many ? read_totals(database_) : Totals();
  const auto count = std::max<int64_t>(static_cast<int64_t>(tests.size()), 1);
  Summariser summariser(database_, totals, exact_runs / count);
  std::vector<TestSummary> summaries;
  for (const TestId& id : tests) {
    const auto test = find_test(id);
    if (!test) continue;
    if (!are_many) totals = read_totals(database_, *test);
    if (!totals.of_test(*test).empty()) summaries.push_back(summariser.summarise(id, *test));
  }
  return summaries;
}

std::vector<RecentRun> Reader::recent_runs(const TestId& id, size_t most) {
  Transaction snapshot(database_, Access::read);
  const auto test = find_test(id);
  if (!test) return {};
  Statement session(database_, "SELECT commit_id, branch, machine FROM sessions WHERE id = ?");
  Statement signature(database_, "SELECT signature FROM signatures WHERE id = ?");
  std::vector<RecentRun> runs;
  for (const RunRow& run : newest_runs(database_, *test, std::min<size_t>(most, INT32_MAX)))
    runs.push_back(describe(session, signature, run));
  return runs;
}

std::vector<RecentRun> Reader::recent_trials(const TestId& id, const std::string& purpose,
                                             size_t most) {
  Transaction snapshot(database_, Access::read);
  const auto test = find_test(id);
  if (!test) return {};
  return unflake::recent_trials(database_, *test, purpose, std::min<size_t>(most, INT32_MAX));
}

std::vector<TestId> Reader::find_tests(const std::string& pattern, size_t most) {
  Statement all(database_,
                "SELECT target, name FROM tests WHERE project = ? ORDER BY target, name");
  std::vector<TestId> tests;
  for (Query query(all, project_); tests.size() < most && query.next();) {
    TestId id{query.text(0), query.text(1)};
    if (glob_match(pattern, to_string(id))) tests.push_back(std::move(id));
  }
  return tests;
}

std::optional<std::string> Reader::latest_output(const TestId& id, const std::string& signature) {
  Statement statement(database_, R"sql(
      SELECT output FROM outputs
      WHERE test = (SELECT id FROM tests WHERE project = ? AND target = ? AND name = ?)
        AND signature = (SELECT id FROM signatures WHERE signature = ?)
      ORDER BY started_us DESC LIMIT 1)sql");
  Query query(statement, project_, id.target, id.name, signature);
  if (!query.next()) return std::nullopt;
  return query.text(0);
}

RunCounts Reader::count_runs(const TestId& id, const std::string& signature, const Window& window) {
  Transaction snapshot(database_, Access::read);
  const auto test = find_test(id);
  if (!test) return {};
  CountedRuns counted;
  Statement find(database_, "SELECT id FROM signatures WHERE signature = ?");
  if (Query query(find, signature); query.next()) counted.signature = query.integer(0);
  const int64_t from = to_microseconds(window.from), until = to_microseconds(window.until);
  for_each_unplaced(database_, *test, [&](const RunRow& run) {
    if (run.started_us >= from && run.started_us < until) counted.add(run);
  });
  Statement placed(database_,
                   "SELECT started_us, outcome, signature, plan"
                   " FROM runs WHERE test = ? AND started_us >= ? AND started_us < ?"
                   " ORDER BY started_us DESC LIMIT ?");
  int64_t rows = 0;
  RunRow run;
  for (Query query(placed, *test, from, until, most_counted + 1); query.next(); ++rows) {
    if (rows == most_counted) continue;
    run.started_us = query.integer(0);
    run.outcome = query.integer(1);
    run.signature = query.integer(2);
    run.plan = query.integer(3);
    counted.add(run);
  }
  counted.counts.cut = rows > most_counted;
  return counted.counts;
}

std::optional<LastFailures> Reader::last_failures(const SessionQuestion& question) {
  Transaction snapshot(database_, Access::read);
  Statement sessions(database_, R"sql(
      SELECT id, started_us, ended_us, command_line FROM sessions
      WHERE project = ?1 AND substr(command_line, 1, length(?2)) = ?2
        AND (?3 = '' OR machine = ?3) AND (?4 = '' OR build = ?4)
      ORDER BY started_us DESC, id DESC LIMIT ?5)sql");
  Statement tests(database_, R"sql(
    SELECT target, name, max(outcome NOT IN (0, 4)) FROM (
      SELECT test, outcome, plan FROM fresh_runs WHERE session = ?1
      UNION ALL
      SELECT test, outcome, plan FROM staged_runs WHERE session = ?1
      UNION ALL
      SELECT runs.test, outcome, plan
      FROM placed_sessions AS placed CROSS JOIN tests CROSS JOIN runs ON runs.test = tests.id
       AND started_us BETWEEN first_us AND last_us AND runs.session = ?1
      WHERE placed.session = ?1 AND project = ?2 AND (?3 = '' OR target = ?3))
    JOIN tests ON tests.id = test
    WHERE plan = 0 AND (?3 = '' OR target = ?3)
    GROUP BY test ORDER BY target, name)sql");
  LastFailuresReader reader(question.target);
  for (Query query(sessions, project_, question.command, question.machine, question.build,
                   LastFailuresReader::most_sessions);
       query.next();) {
    SessionTests session{to_time(query.integer(1)), query.text(3), !query.is_null(2), {}};
    for (Query test(tests, query.integer(0), project_, question.target); test.next();)
      session.tests.push_back({{test.text(0), test.text(1)}, test.integer(2) != 0});
    if (!reader.take(session)) break;
  }
  return reader.result();
}

std::optional<int64_t> Reader::find_test(const TestId& test) {
  Statement statement(database_,
                      "SELECT id FROM tests WHERE project = ? AND target = ? AND name = ?");
  Query query(statement, project_, test.target, test.name);
  if (!query.next()) return std::nullopt;
  return query.integer(0);
}

}  // namespace unflake
