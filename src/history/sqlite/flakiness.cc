#include "history/sqlite/flakiness.h"

#include <algorithm>

namespace unflake {

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

}  // namespace unflake
