#include "store/sqlite/sqlite_parts.h"

#include <algorithm>
#include <set>

#include "store/values.h"
#include "util/text.h"

namespace unflake {

ExecutedTable::ExecutedTable(Database& database, int64_t project)
    : database_(database),
      project_(project),
      find_function_(database,
                     "SELECT id FROM functions"
                     " WHERE project = ? AND kind = ? AND name = ? AND file = ?"),
      insert_function_(database,
                       "INSERT INTO functions (project, kind, name, file) VALUES (?, ?, ?, ?)"
                       " RETURNING id"),
      find_set_(database, "SELECT id FROM function_sets WHERE hash = ? AND members = ?"),
      insert_set_(database, "INSERT INTO function_sets (hash, members) VALUES (?, ?) RETURNING id"),
      insert_trace_(database,
                    "INSERT INTO function_traces (test, started_us, session, functions)"
                    " VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING") {}

namespace {

// The row of a statement that gives one; the statement has run to its end then.
template <class... Values>
int64_t made_row(Database& database, Statement& insert, const Values&... values) {
  Query query(insert, values...);
  if (!query.next()) database.fail(SQLITE_CORRUPT);
  const int64_t row = query.integer(0);
  query.next();
  return row;
}

}  // namespace

int64_t ExecutedTable::function_row(const FunctionId& function) {
  const std::string name = shorten(function.name, longest_function_name);
  const std::string file = shorten(function.file, longest_function_name);
  const int64_t kind = code_of(function.kind);
  if (Query known(find_function_, project_, kind, name, file); known.next())
    return known.integer(0);
  return made_row(database_, insert_function_, project_, kind, name, file);
}

int64_t ExecutedTable::set_row(const std::string& members) {
  const int64_t hash = hash_of_members(members);
  if (Query known(find_set_, hash, Blob{members}); known.next()) return known.integer(0);
  return made_row(database_, insert_set_, hash, Blob{members});
}

void ExecutedTable::insert(SessionId session, int64_t test, const FunctionsRecord& trace) {
  std::set<int64_t> rows;
  for (const FunctionId& function : trace.functions) rows.insert(function_row(function));
  const int64_t set = set_row(packed_rows(std::vector(rows.begin(), rows.end())));
  insert_trace_.run(test, to_microseconds(trace.started), session, set);
}

FunctionTraces latest_functions(Database& database, int64_t project, const std::string& pattern) {
  Transaction snapshot(database, Access::read);
  TraceReader traces;
  Statement newest(database, R"sql(
      SELECT target, name, max(function_traces.started_us), coalesce(commit_id, ''), members
      FROM function_traces
      JOIN tests ON tests.id = test
      JOIN function_sets ON function_sets.id = functions
      LEFT JOIN sessions ON sessions.id = session
      WHERE tests.project = ? GROUP BY test ORDER BY target, name)sql");
  for (Query query(newest, project); query.next();) {
    TestId test{query.text(0), query.text(1)};
    if (glob_match(pattern, to_string(test)))
      traces.add(std::move(test), to_time(query.integer(2)), query.text(3), query.text(4));
  }
  Statement names(database,
                  "SELECT id, kind, name, file FROM functions WHERE project = ? ORDER BY id");
  for (Query query(names, project); query.next();)
    traces.name(query.integer(0),
                {function_kind_from_code(query.integer(1)), query.text(2), query.text(3)});
  return traces.take();
}

namespace {

// Of all projects: sets do not say whose they are, their members do.
std::set<int64_t> functions_in_use(Database& database) {
  std::set<int64_t> used;
  Statement sets(database, "SELECT members FROM function_sets");
  for (Query query(sets); query.next();)
    for (const int64_t row : unpacked_rows(query.text(0))) used.insert(row);
  return used;
}

void forget_unused_functions(Database& database) {
  database.execute(
      "DELETE FROM function_sets WHERE id NOT IN (SELECT functions FROM function_traces)");
  const std::set<int64_t> used = functions_in_use(database);
  std::vector<int64_t> unused;
  Statement all(database, "SELECT id FROM functions");
  for (Query query(all); query.next();)
    if (!used.contains(query.integer(0))) unused.push_back(query.integer(0));
  Statement remove(database, "DELETE FROM functions WHERE id = ?");
  for (const int64_t row : unused) remove.run(row);
}

}  // namespace

int64_t forget_function_traces(Database& database, int64_t project, int64_t before_us) {
  Transaction transaction(database);
  Statement remove(database, R"sql(
      DELETE FROM function_traces WHERE started_us < ?1
        AND test IN (SELECT id FROM tests WHERE project = ?2)
        AND EXISTS (SELECT 1 FROM function_traces AS newer
                    WHERE newer.test = function_traces.test
                      AND (newer.started_us, newer.session)
                          > (function_traces.started_us, function_traces.session)))sql");
  remove.run(before_us, project);
  const int64_t removed = database.changes();
  if (removed > 0) forget_unused_functions(database);
  transaction.commit();
  return removed;
}

}  // namespace unflake
