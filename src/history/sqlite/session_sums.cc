#include "history/sqlite/session_sums.h"

#include <algorithm>

namespace unflake {
namespace {

// No run takes longer than thirty years; what claims to must not make a sum overflow.
int64_t sane_duration(const RunRow& run) {
  return std::clamp<int64_t>(run.duration_us, 0, 1'000'000'000'000'000);
}

int64_t end_of(const RunRow& run) {
  return std::clamp(run.started_us, INT64_MIN / 2, INT64_MAX / 2) + sane_duration(run);
}

bool is_next_attempt(const RunRow& run, const RunRow& next) {
  return run.test == next.test && next.attempt == run.attempt + 1;
}

// The passing run that followed a failing one: it was made because of the failure.
bool is_retry(const RunRow& run, const RunRow& next) {
  return is_next_attempt(run, next) && run.failed_by_itself() && next.passed_by_itself();
}

bool contains(std::span<const RunRow> runs, const RunRow& run) {
  return std::ranges::binary_search(runs, run.by_session(), {}, &RunRow::by_session);
}

}  // namespace

SessionSums::SessionSums(Database& database, SessionRuns& stored)
    : stored_(stored),
      add_total_(database,
                 "INSERT INTO session_totals VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                 " runs = runs + excluded.runs, failures = failures + excluded.failures,"
                 " last_us = max(last_us, excluded.last_us)"),
      failed_tests_(database, "SELECT DISTINCT test FROM incidents WHERE session = ?"),
      add_passes_(database,
                  "UPDATE incidents SET passes = passes + ?3, flaky = max(flaky, passes + ?3 > 0)"
                  " WHERE session = ?1 AND test = ?2"),
      passes_(database, "SELECT passes FROM incidents WHERE session = ? AND test = ? LIMIT 1"),
      add_incident_(database, R"sql(
          INSERT INTO incidents VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?6 > 0)
          ON CONFLICT DO UPDATE SET
            outcome = iif(excluded.first_us < first_us, excluded.outcome, outcome),
            failures = failures + excluded.failures,
            first_us = min(first_us, excluded.first_us),
            last_us = max(last_us, excluded.last_us),
            wasted_us = wasted_us + excluded.wasted_us)sql") {}

void SessionSums::add(std::span<const RunRow> runs) {
  if (runs.empty()) return;
  add_totals(runs);
  const std::set<int64_t> failed_before = failed_tests(runs.front().session);
  for (size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
    while (end < runs.size() && runs[end].test == runs[begin].test) ++end;
    const auto of_test = runs.subspan(begin, end - begin);
    const bool failed = failed_before.contains(of_test.front().test);
    if (failed || std::ranges::any_of(of_test, &RunRow::failed_by_itself))
      add_test(of_test, failed);
  }
}

void SessionSums::add_totals(std::span<const RunRow> runs) {
  int64_t count = 0, failures = 0, last_us = INT64_MIN;
  for (const RunRow& run : runs) {
    if (run.plan != 0) continue;
    ++count;
    failures += run.failed_by_itself();
    last_us = std::max(last_us, end_of(run));
  }
  if (count > 0) add_total_.run(runs.front().session, count, failures, last_us);
}

std::set<int64_t> SessionSums::failed_tests(int64_t session) {
  std::set<int64_t> tests;
  for (Query query(failed_tests_, session); query.next();) tests.insert(query.integer(0));
  return tests;
}

void SessionSums::add_test(std::span<const RunRow> runs, bool failed_before) {
  const int64_t session = runs.front().session, test = runs.front().test;
  Incidents incidents;
  for (const RunRow& run : runs) {
    if (!run.failed_by_itself()) continue;
    auto [at, is_new] = incidents.try_emplace(run.signature);
    Incident& incident = at->second;
    if (is_new) incident = {.outcome = run.outcome, .first_us = run.started_us};
    ++incident.failures;
    incident.last_us = run.started_us;
    incident.wasted_us += sane_duration(run);
  }
  add_waste(runs, incidents);
  const int64_t passes = std::ranges::count_if(runs, &RunRow::passed_by_itself);
  if (failed_before && passes > 0) add_passes_.run(session, test, passes);
  const int64_t all =
      failed_before ? passes_of_failed(session, test) : stored_.passes(session, test);
  for (const auto& [signature, sums] : incidents)
    add_incident_.run(session, test, signature, sums.outcome, sums.failures, all, sums.first_us,
                      sums.last_us, sums.wasted_us);
}

// Each pair of a failure and its retry is found once: when the later of the two arrives.
void SessionSums::add_waste(std::span<const RunRow> runs, Incidents& incidents) {
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunRow& run = runs[i];
    if (run.passed_by_itself() && run.attempt > 1) {
      const bool follows = i > 0 && is_next_attempt(runs[i - 1], run);
      const auto before = follows ? runs[i - 1] : stored_.before(run);
      if (!before || !is_retry(*before, run)) continue;
      const auto [at, is_new] = incidents.try_emplace(before->signature);
      if (is_new)
        at->second = {.outcome = before->outcome,
                      .first_us = before->started_us,
                      .last_us = before->started_us};
      at->second.wasted_us += sane_duration(run);
    } else if (run.failed_by_itself()) {
      const bool is_followed = i + 1 < runs.size() && is_next_attempt(run, runs[i + 1]);
      const auto after = is_followed ? std::nullopt : stored_.after(run);
      if (after && is_retry(run, *after) && !contains(runs, *after))
        incidents[run.signature].wasted_us += sane_duration(*after);
    }
  }
}

int64_t SessionSums::passes_of_failed(int64_t session, int64_t test) {
  Query query(passes_, session, test);
  return query.next() ? query.integer(0) : 0;
}

}  // namespace unflake
