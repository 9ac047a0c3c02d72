#include "store/postgres/pg_parts.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "store/store.h"
#include "store/values.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int oldest_server = 130000;
constexpr int64_t schema_lock = 0x756e666c616b6501;  // "unflake", 1

const std::vector<std::string> table_names = {
    "projects",        "tests",          "targets",     "sessions",   "plans",
    "signatures",      "trials",         "trial_plans", "functions",  "function_sets",
    "function_traces", "runs",           "totals",      "fresh_runs", "histograms",
    "outputs",         "session_totals", "causes",      "incidents",  "cause_signatures",
    "lifecycle",       "suppressions",   "horizons"};

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

namespace {

using Cure = PgFailure::Cure;

// How often the same work is done again when the server asks for that, because others were in the
// way. A lost connection is made again only once: a server that is gone is not waited for here.
constexpr int most_repeats = 20;

void pause_before_repeat(int repeats) {
  thread_local std::minstd_rand random(std::random_device{}());
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % (2 * repeats + 1)));
}

// For work that may be done twice, also when nobody knows whether it was done.
template <class Work>
auto attempt_again(Work work) -> Result<decltype(work())> {
  return attempt([&] {
    bool reconnected = false;
    for (int repeats = 0;; ++repeats) {
      try {
        return work();
      } catch (const PgFailure& failure) {
        const bool again = failure.cure == Cure::repeat && repeats < most_repeats;
        const bool lost = failure.cure == Cure::reconnect && !std::exchange(reconnected, true);
        if (!again && !lost) throw;
      }
      pause_before_repeat(repeats);
    }
  });
}

// Whether a store may be written to, or was opened for questions only.
class Permission {
 public:
  Permission(bool given, std::string place) : given_(given), place_(std::move(place)) {}

  bool given() const { return given_; }
  Error refusal() const {
    return internal_error("the history was opened for questions only", place_);
  }

  template <class Work>
  auto write(Work work) const -> Result<decltype(work())> {
    if (!given_) return refusal();
    return attempt_again(std::move(work));
  }

 private:
  const bool given_;
  const std::string place_;
};

class PostgresLifecycle : public LifecycleStore {
 public:
  PostgresLifecycle(PgConnection& connection, int64_t project, const Permission& permission,
                    PgWriter& writer)
      : connection_(connection), project_(project), permission_(permission), writer_(writer) {}

  Result<std::vector<FlakyFailure>> flaky_failures(const Window& window, size_t most) override {
    return attempt_again(
        [&] { return unflake::flaky_failures(connection_, project_, window, most); });
  }
  Result<int64_t> count_suppressed_builds(const TestId& test, const std::string& signature,
                                          const Window& window) override {
    return attempt_again([&] {
      return unflake::count_suppressed_builds(connection_, project_, test, signature, window);
    });
  }
  Result<std::vector<Prevalence>> prevalence(const Window& window) override {
    return attempt_again([&] { return unflake::prevalence(connection_, window); });
  }

  Result<void> note(const LifecycleStep& step) override {
    return permission_.write([&] { note_step(connection_, writer_.test_row(step.test), step); });
  }
  Result<std::vector<LifecycleStep>> steps(const Window& window) override {
    return attempt_again([&] { return read_lifecycle(connection_, project_, window); });
  }
  Result<std::vector<CauseRecord>> causes() override {
    return attempt_again([&] { return read_causes(connection_, project_); });
  }
  Result<int64_t> save_cause(const CauseRecord& cause) override {
    if (!permission_.given()) return permission_.refusal();
    const auto save = [&] { return unflake::save_cause(connection_, project_, cause); };
    return cause.id == 0 ? attempt(save) : attempt_again(save);  // a new one must not come twice
  }

 private:
  PgConnection& connection_;
  const int64_t project_;
  const Permission& permission_;
  PgWriter& writer_;
};

class PostgresStore : public Store {
 public:
  PostgresStore(std::unique_ptr<PgConnection> connection, int64_t project, bool writes)
      : connection_(std::move(connection)),
        project_(project),
        permission_(writes, connection_->place()),
        writer_(*connection_, project),
        reader_(*connection_, project),
        lifecycle_(*connection_, project, permission_, writer_) {}

  Result<SessionId> begin_session(const SessionRecord& session) override {
    const std::string uuid = session.uuid.empty() ? make_session_uuid() : session.uuid;
    return permission_.write([&] { return writer_.begin_session(session, uuid); });
  }
  Result<std::optional<TimePoint>> find_session(const std::string& uuid) override {
    return attempt_again([&] { return reader_.find_session(uuid); });
  }
  Result<void> record(SessionId session, const RunRecord& run) override {
    return permission_.write([&] { writer_.record(session, run); });
  }
  Result<void> record_all(SessionId session, std::span<const RunRecord> runs) override {
    return permission_.write([&] { writer_.record_all(session, runs); });
  }
  Result<void> record_functions(SessionId session,
                                std::span<const FunctionsRecord> traces) override {
    return permission_.write([&] { writer_.record_functions(session, traces); });
  }
  Result<void> suppress(SessionId session, const TestId& test,
                        const std::string& signature) override {
    return permission_.write([&] { writer_.suppress(session, test, signature); });
  }
  Result<void> end_session(SessionId session) override {
    return permission_.write([&] { writer_.end_session(session); });
  }
  Result<void> stop_session(SessionId session) override {
    return permission_.write([&] { writer_.stop_session(session); });
  }

  Result<void> remember_target(const TargetRecord& target) override {
    return permission_.write([&] { unflake::remember_target(*connection_, project_, target); });
  }
  Result<std::optional<TargetRecord>> find_target(const std::string& name) override {
    return attempt_again([&] { return unflake::find_target(*connection_, project_, name); });
  }

  Result<std::vector<TestSummary>> summarise(const std::string& pattern, size_t most) override {
    return attempt_again([&] { return reader_.summarise(pattern, most); });
  }
  Result<std::optional<TestSummary>> summarise_test(const TestId& test) override {
    return attempt_again([&] { return reader_.summarise_test(test); });
  }
  Result<std::vector<TestSummary>> summarise_tests(std::span<const TestId> tests) override {
    return attempt_again([&] { return reader_.summarise_tests(tests); });
  }
  Result<std::vector<RecentRun>> recent_runs(const TestId& test, size_t most) override {
    return attempt_again([&] { return reader_.recent_runs(test, most); });
  }
  Result<std::vector<RecentRun>> recent_trials(const TestId& test, const std::string& purpose,
                                               size_t most) override {
    return attempt_again([&] { return reader_.recent_trials(test, purpose, most); });
  }
  Result<FunctionTraces> latest_functions(const std::string& pattern) override {
    return attempt_again(
        [&] { return unflake::latest_functions(*connection_, project_, pattern); });
  }
  Result<std::vector<TestId>> find_tests(const std::string& pattern, size_t most) override {
    return attempt_again([&] { return reader_.find_tests(pattern, most); });
  }
  Result<std::optional<std::string>> latest_output(const TestId& test,
                                                   const std::string& signature) override {
    return attempt_again([&] { return reader_.latest_output(test, signature); });
  }
  Result<RunCounts> count_runs(const TestId& test, const std::string& signature,
                               const Window& window) override {
    return attempt_again([&] { return reader_.count_runs(test, signature, window); });
  }
  Result<std::optional<LastFailures>> last_failures(const SessionQuestion& question) override {
    return attempt_again([&] { return reader_.last_failures(question); });
  }

  LifecycleStore& lifecycle() override { return lifecycle_; }

  Result<RetentionCount> forget(const Retention& retention, TimePoint now) override {
    if (!permission_.given()) return permission_.refusal();
    return attempt([&] {
      fold_everything(*connection_);
      return forget_runs(*connection_, project_, retention, now);
    });
  }

  Result<std::optional<TimePoint>> forgotten_before() override {
    return attempt([&] { return unflake::forgotten_before(*connection_, project_); });
  }

  Result<void> visit(const Visitor& visitor) override {
    const auto visited = attempt([&] { return visit_history(*connection_, project_, visitor); });
    return visited ? *visited : visited.error();
  }

 private:
  std::unique_ptr<PgConnection> connection_;
  int64_t project_;
  Permission permission_;
  PgWriter writer_;
  PgReader reader_;
  PostgresLifecycle lifecycle_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_postgres_store(const StoreAddress& address, Duration patience) {
  return attempt_again([&]() -> std::unique_ptr<Store> {
    auto connection = std::make_unique<PgConnection>(address.url, patience);
    check_server(*connection, connection->server_version(), connection->server_encoding());
    make_schema(*connection);
    const int64_t project = make_project(*connection, address.project);
    return std::make_unique<PostgresStore>(std::move(connection), project, true);
  });
}

Result<std::unique_ptr<Store>> open_postgres_store_to_read(const StoreAddress& address,
                                                           Duration patience) {
  return attempt_again([&]() -> std::unique_ptr<Store> {
    auto connection = std::make_unique<PgConnection>(address.url, patience);
    check_server(*connection, connection->server_version(), connection->server_encoding());
    require_newest_schema(*connection);
    const int64_t project = find_project(*connection, address.project);
    return std::make_unique<PostgresStore>(std::move(connection), project, false);
  });
}

}  // namespace unflake
