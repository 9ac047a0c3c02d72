#include "store/postgres/pg_parts.h"

#include <map>
#include <set>

#include "store/values.h"
#include "util/text.h"

namespace unflake {
namespace {

// Whoever writes rows that others may forget when nothing uses them, or forgets them, takes it.
constexpr int64_t functions_lock = 0x756e666c616b6504;  // "unflake", 4

void lock_functions(PgConnection& connection) {
  connection.run("SELECT pg_advisory_xact_lock($1::bigint)", functions_lock);
}

FunctionId as_stored(const FunctionId& function) {
  return {function.kind, shorten(function.name, longest_function_name),
          shorten(function.file, longest_function_name)};
}

using FunctionRows = std::map<FunctionId, int64_t>;

FunctionRows rows_of_functions(PgConnection& connection, int64_t project,
                               std::span<const FunctionsRecord> traces) {
  FunctionRows all;
  for (const FunctionsRecord& trace : traces)
    for (const FunctionId& function : trace.functions) all.try_emplace(as_stored(function), 0);
  std::vector<int64_t> kinds;
  std::vector<std::string> names, files;
  for (const auto& [function, row] : all) {
    kinds.push_back(code_of(function.kind));
    names.push_back(function.name);
    files.push_back(function.file);
  }
  connection.run(R"sql(
      INSERT INTO functions (project, kind, name, file)
      SELECT $1::bigint, * FROM unnest($2::bigint[], $3::text[], $4::text[])
      ON CONFLICT DO NOTHING)sql",
                 project, kinds, names, files);
  const PgRows rows = connection.run(R"sql(
      SELECT id FROM unnest($2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY
             AS wanted (kind, name, file, number)
      JOIN functions ON project = $1::bigint AND functions.kind = wanted.kind
        AND md5(functions.name) = md5(wanted.name) AND md5(functions.file) = md5(wanted.file)
      ORDER BY number)sql",
                                     project, kinds, names, files);
  if (rows.size() != static_cast<int>(all.size()))
    connection.fail({"XX001", "a function that was added is not there"});
  int next = 0;
  for (auto& [function, row] : all) row = rows.integer(next++, 0);
  return all;
}

int64_t row_of_set(PgConnection& connection, const std::string& members) {
  const int64_t hash = hash_of_members(members);
  const PgRows known =
      connection.run("SELECT id FROM function_sets WHERE hash = $1::bigint AND members = $2::bytea",
                     hash, PgBytes{members});
  if (!known.empty()) return known.integer(0, 0);
  return connection
      .run(
          "INSERT INTO function_sets (hash, members) VALUES ($1::bigint, $2::bytea)"
          " RETURNING id",
          hash, PgBytes{members})
      .integer(0, 0);
}

}  // namespace

void insert_functions(PgConnection& connection, int64_t project, SessionId session,
                      std::span<const FunctionsRecord> traces, const std::vector<int64_t>& tests) {
  PgTransaction transaction(connection);
  lock_functions(connection);
  connection.execute("SET LOCAL synchronous_commit = off");  // the next run tells the same
  const FunctionRows known = rows_of_functions(connection, project, traces);
  for (size_t i = 0; i < traces.size(); ++i) {
    std::set<int64_t> rows;
    for (const FunctionId& function : traces[i].functions)
      rows.insert(known.at(as_stored(function)));
    const int64_t set = row_of_set(connection, packed_rows(std::vector(rows.begin(), rows.end())));
    connection.run(
        "INSERT INTO function_traces (test, started_us, session, functions)"
        " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        tests[i], to_microseconds(traces[i].started), session, set);
  }
  transaction.commit();
}

FunctionTraces latest_functions(PgConnection& connection, int64_t project,
                                const std::string& pattern) {
  PgTransaction snapshot(connection, PgAccess::read);
  TraceReader traces;
  const PgRows newest = connection.run(R"sql(
      SELECT target, name, started_us, commit_id, members
      FROM (SELECT DISTINCT ON (test) test, target, name, function_traces.started_us,
                   coalesce(commit_id, '') AS commit_id, functions
            FROM function_traces
            JOIN tests ON tests.id = test
            LEFT JOIN sessions ON sessions.id = session
            WHERE tests.project = $1::bigint
            ORDER BY test, function_traces.started_us DESC, session DESC) AS newest
      JOIN function_sets ON function_sets.id = functions
      ORDER BY target COLLATE "C", name COLLATE "C")sql",
                                       project);
  for (int row = 0; row < newest.size(); ++row) {
    TestId test{newest.text(row, 0), newest.text(row, 1)};
    if (glob_match(pattern, to_string(test)))
      traces.add(std::move(test), to_time(newest.integer(row, 2)), newest.text(row, 3),
                 newest.bytes(row, 4));
  }
  const PgRows names = connection.run(
      "SELECT id, kind, name, file FROM functions WHERE project = $1::bigint ORDER BY id", project);
  for (int row = 0; row < names.size(); ++row)
    traces.name(names.integer(row, 0), {function_kind_from_code(names.integer(row, 1)),
                                        names.text(row, 2), names.text(row, 3)});
  return traces.take();
}

namespace {

// Of all projects: sets do not say whose they are, their members do.
void forget_unused_functions(PgConnection& connection) {
  connection.run(
      "DELETE FROM function_sets WHERE NOT EXISTS"
      " (SELECT FROM function_traces WHERE functions = function_sets.id)");
  std::set<int64_t> used;
  const PgRows sets = connection.run("SELECT members FROM function_sets");
  for (int row = 0; row < sets.size(); ++row)
    for (const int64_t function : unpacked_rows(sets.bytes(row, 0))) used.insert(function);
  connection.run("DELETE FROM functions WHERE NOT id = ANY ($1::bigint[])",
                 std::vector(used.begin(), used.end()));
}

}  // namespace

int64_t forget_function_traces(PgConnection& connection, int64_t project, int64_t before_us) {
  PgTransaction transaction(connection);
  lock_functions(connection);
  const int64_t removed = connection
                              .run(R"sql(
      DELETE FROM function_traces AS old WHERE started_us < $1::bigint
        AND test IN (SELECT id FROM tests WHERE project = $2::bigint)
        AND EXISTS (SELECT FROM function_traces AS newer
                    WHERE newer.test = old.test
                      AND (newer.started_us, newer.session) > (old.started_us, old.session)))sql",
                                   before_us, project)
                              .changed();
  if (removed > 0) forget_unused_functions(connection);
  transaction.commit();
  return removed;
}

}  // namespace unflake
