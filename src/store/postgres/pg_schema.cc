#include "store/postgres/pg_schema.h"

#include <fmt/format.h>

#include <vector>

#include "store/migrations.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int oldest_server = 130000;
constexpr int64_t schema_lock = 0x756e666c616b6501;  // "unflake", 1

const std::vector<std::string> table_names = {
    "projects", "tests",     "targets",          "sessions",   "plans",        "signatures",
    "runs",     "totals",    "fresh_runs",       "histograms", "outputs",      "session_totals",
    "causes",   "incidents", "cause_signatures", "lifecycle",  "suppressions", "horizons"};

[[noreturn]] void refuse(ErrorKind kind, std::string what, const std::string& place,
                         std::string next) {
  throw PgFailure({kind, std::move(what), place, std::move(next)}, PgFailure::Cure::none);
}

std::string tables_of_others(PgConnection& connection) {
  return connection
      .run(
          "SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class"
          " WHERE relnamespace = to_regnamespace(quote_ident(current_schema()))"
          " AND relname = ANY($1::text[]) AND relkind IN ('r', 'p', 'v', 'm', 'f')",
          table_names)
      .text(0, 0);
}

bool has_history(PgConnection& connection) {
  return !connection.run("SELECT to_regclass('unflake_schema')").is_null(0, 0);
}

// 0: there are no tables yet.
int64_t schema_version(PgConnection& connection) {
  if (!has_history(connection)) {
    const std::string others = tables_of_others(connection);
    if (others.empty()) return 0;
    // Somebody may have made the history between the two questions.
    if (!has_history(connection))
      refuse(ErrorKind::usage,
             fmt::format("this database holds tables of something else: {}", printable(others)),
             connection.place(), "give unflake a database of its own: `createdb unflake`");
  }
  const PgRows rows = connection.run("SELECT version FROM unflake_schema");
  return rows.empty() ? 0 : rows.integer(0, 0);
}

void refuse_newer(int64_t version, const PgConnection& connection) {
  const auto newest = static_cast<int64_t>(newest_schema());
  if (version > newest)
    refuse(ErrorKind::usage,
           fmt::format("the history's format is version {}, this unflake knows up to version {}",
                       version, newest),
           connection.place(), "use the newer unflake that wrote it");
}

void apply_missing(PgConnection& connection, int64_t version) {
  if (version == 0) {
    connection.execute("CREATE TABLE unflake_schema (version BIGINT NOT NULL)");
    connection.execute("INSERT INTO unflake_schema VALUES (0)");
  }
  const auto newest = static_cast<int64_t>(newest_schema());
  for (int64_t next = version + 1; next <= newest; ++next)
    connection.execute(migration(static_cast<size_t>(next), Dialect::postgres));
  connection.run("UPDATE unflake_schema SET version = $1::bigint", newest);
}

}  // namespace

void check_server(const PgConnection& connection, int version, const std::string& encoding) {
  if (version < oldest_server)
    refuse(ErrorKind::usage,
           fmt::format("the history's server is PostgreSQL {}, which is too old", version / 10000),
           connection.place(), fmt::format("use version {} or later", oldest_server / 10000));
  if (encoding != "UTF8")
    refuse(ErrorKind::usage,
           fmt::format("the history's database is encoded in {}, not in UTF8", printable(encoding)),
           connection.place(), "make one with `createdb --encoding=UTF8 --template=template0`");
}

void make_schema(PgConnection& connection) {
  const auto newest = static_cast<int64_t>(newest_schema());
  if (schema_version(connection) == newest) return;
  PgTransaction transaction(connection);
  connection.run("SELECT pg_advisory_xact_lock($1::bigint)", schema_lock);
  const int64_t version = schema_version(connection);  // others may have been faster
  refuse_newer(version, connection);
  if (version < newest) apply_missing(connection, version);
  transaction.commit();
}

void require_newest_schema(PgConnection& connection) {
  const int64_t version = schema_version(connection);
  if (version == 0)
    refuse(ErrorKind::usage, "there is no history yet", connection.place(),
           "`unflake run TARGET` records every run");
  refuse_newer(version, connection);
  const auto newest = static_cast<int64_t>(newest_schema());
  if (version < newest)
    refuse(ErrorKind::internal,
           fmt::format("the history's format is version {}, this unflake reads version {}", version,
                       newest),
           connection.place(), "`unflake run TARGET` brings it up to date");
}

int64_t find_project(PgConnection& connection, const std::string& name) {
  const PgRows rows = connection.run("SELECT id FROM projects WHERE md5(name) = md5($1)", name);
  return rows.empty() ? -1 : rows.integer(0, 0);
}

int64_t make_project(PgConnection& connection, const std::string& name) {
  const int64_t known = find_project(connection, name);
  if (known >= 0) return known;
  connection.run("INSERT INTO projects (name) VALUES ($1) ON CONFLICT DO NOTHING", name);
  return find_project(connection, name);
}

}  // namespace unflake
