#include "store/sqlite/sqlite_store.h"

#include <fmt/format.h>

#include <utility>

#include "store/sqlite/database.h"
#include "store/sqlite/sqlite_parts.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {
namespace {

std::vector<std::string> signatures_of(Database& database, int64_t cause) {
  Statement find(database,
                 "SELECT signature FROM cause_signatures WHERE cause = ? ORDER BY signature");
  std::vector<std::string> signatures;
  for (Query query(find, cause); query.next();) signatures.push_back(query.text(0));
  return signatures;
}

int64_t insert_cause(Database& database, int64_t project, const CauseRecord& cause) {
  Statement insert(database,
                   "INSERT INTO causes (project, title, state, opened_us, closed_us, reopened,"
                   " category, url) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id");
  Query query(insert, project, cause.title, code_of(cause.state), to_microseconds(cause.opened),
              to_microseconds(cause.closed), cause.reopened, cause.category, cause.url);
  const int64_t id = query.next() ? query.integer(0) : 0;
  query.next();
  return id;
}

void replace_cause(Database& database, int64_t project, const CauseRecord& cause) {
  Statement update(database,
                   "UPDATE causes SET title = ?, state = ?, opened_us = ?, closed_us = ?,"
                   " reopened = ?, category = ?, url = ? WHERE id = ? AND project = ?");
  update.run(cause.title, code_of(cause.state), to_microseconds(cause.opened),
             to_microseconds(cause.closed), cause.reopened, cause.category, cause.url, cause.id,
             project);
  if (database.changes() == 0)
    throw DatabaseFailure(internal_error(
        fmt::format("the history has no cause {} of this project", cause.id), database.path()));
}

}  // namespace

void note_step(Database& database, int64_t test, const LifecycleStep& step) {
  Statement insert(database,
                   "INSERT INTO lifecycle (test, at_us, kind, signature, commit_id, reason, owner,"
                   " url) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  insert.run(test, to_microseconds(step.at), code_of(step.kind), step.signature, step.commit,
             step.reason, step.owner, step.url);
}

std::vector<LifecycleStep> read_lifecycle(Database& database, int64_t project,
                                          const Window& window) {
  Statement steps(database, R"sql(
      SELECT kind, target, name, signature, at_us, commit_id, reason, owner, url
      FROM lifecycle JOIN tests ON tests.id = test
      WHERE project = ? AND at_us >= ? AND at_us < ?
      ORDER BY at_us, target, name, kind, signature)sql");
  std::vector<LifecycleStep> all;
  for (Query query(steps, project, to_microseconds(window.from), to_microseconds(window.until));
       query.next();)
    all.push_back({.kind = lifecycle_from_code(query.integer(0)),
                   .test = {query.text(1), query.text(2)},
                   .signature = query.text(3),
                   .at = to_time(query.integer(4)),
                   .commit = query.text(5),
                   .reason = query.text(6),
                   .owner = query.text(7),
                   .url = query.text(8)});
  return all;
}

std::vector<CauseRecord> read_causes(Database& database, int64_t project) {
  Transaction snapshot(database, Access::read);
  Statement find(database,
                 "SELECT id, title, state, opened_us, closed_us, reopened, category, url"
                 " FROM causes WHERE project = ? ORDER BY id");
  std::vector<CauseRecord> causes;
  for (Query query(find, project); query.next();) {
    causes.push_back(
        {.id = query.integer(0),
         .title = query.text(1),
         .signatures = signatures_of(database, query.integer(0)),
         .state = cause_state_from_code(query.integer(2)),
         .opened = to_time(query.integer(3)),
         .closed = query.is_null(4) ? std::nullopt : std::optional(to_time(query.integer(4))),
         .reopened = static_cast<int>(query.integer(5)),
         .category = query.text(6),
         .url = query.text(7)});
  }
  return causes;
}

int64_t save_cause(Database& database, int64_t project, const CauseRecord& cause) {
  Transaction transaction(database);
  int64_t id = cause.id;
  if (id == 0)
    id = insert_cause(database, project, cause);
  else
    replace_cause(database, project, cause);
  Statement remove(database, "DELETE FROM cause_signatures WHERE cause = ?");
  remove.run(id);
  Statement add(database, "INSERT INTO cause_signatures VALUES (?, ?) ON CONFLICT DO NOTHING");
  for (const std::string& signature : cause.signatures) add.run(id, signature);
  transaction.commit();
  return id;
}

void remember_target(Database& database, int64_t project, const TargetRecord& target) {
  Statement remember(database, "REPLACE INTO targets VALUES (?, ?, ?, ?, ?)");
  remember.run(project, target.name, to_string(target.framework), target.path,
               Blob{join_argv(target.argv)});
}

std::optional<TargetRecord> find_target(Database& database, int64_t project,
                                        const std::string& name) {
  Statement find(database,
                 "SELECT framework, path, argv FROM targets WHERE project = ? AND name = ?");
  Query query(find, project, name);
  const auto framework = query.next() ? framework_from(query.text(0)) : std::nullopt;
  if (!framework) return std::nullopt;
  return TargetRecord{name, *framework, query.text(1), split_argv(query.text(2))};
}

namespace {

// The row of a project. One that nothing was ever recorded of has none that can be read.
int64_t project_row(Database& database, const std::string& name) {
  Statement find(database, "SELECT id FROM projects WHERE name = ?");
  Query query(find, name);
  return query.next() ? query.integer(0) : -1;
}

int64_t make_project_row(Database& database, const std::string& name) {
  if (const int64_t row = project_row(database, name); row >= 0) return row;
  Statement insert(database, "INSERT INTO projects (name) VALUES (?) ON CONFLICT DO NOTHING");
  insert.run(name);
  return project_row(database, name);
}

class SqliteLifecycle : public LifecycleStore {
 public:
  SqliteLifecycle(Database& database, int64_t project, Writer& writer)
      : database_(database), project_(project), writer_(writer) {}

  Result<std::vector<FlakyFailure>> flaky_failures(const Window& window, size_t most) override {
    return attempt([&] { return unflake::flaky_failures(database_, project_, window, most); });
  }
  Result<int64_t> count_suppressed_builds(const TestId& test, const std::string& signature,
                                          const Window& window) override {
    return attempt([&] {
      return unflake::count_suppressed_builds(database_, project_, test, signature, window);
    });
  }
  Result<std::vector<Prevalence>> prevalence(const Window& window) override {
    return attempt([&] { return unflake::prevalence(database_, window); });
  }

  Result<void> note(const LifecycleStep& step) override {
    return attempt([&] { writer_.note(step); });
  }
  Result<std::vector<LifecycleStep>> steps(const Window& window) override {
    return attempt([&] { return read_lifecycle(database_, project_, window); });
  }
  Result<std::vector<CauseRecord>> causes() override {
    return attempt([&] { return read_causes(database_, project_); });
  }
  Result<int64_t> save_cause(const CauseRecord& cause) override {
    return attempt([&] { return unflake::save_cause(database_, project_, cause); });
  }

 private:
  Database& database_;
  const int64_t project_;
  Writer& writer_;
};

class SqliteStore : public Store {
 public:
  SqliteStore(std::unique_ptr<Database> database, int64_t project)
      : database_(std::move(database)),
        project_(project),
        writer_(*database_, project),
        reader_(*database_, project),
        lifecycle_(*database_, project, writer_) {}

  Result<SessionId> begin_session(const SessionRecord& session) override {
    return attempt([&] { return writer_.begin_session(session); });
  }
  Result<std::optional<TimePoint>> find_session(const std::string& uuid) override {
    return attempt([&] { return reader_.find_session(uuid); });
  }
  Result<void> record(SessionId session, const RunRecord& run) override {
    return attempt([&] { writer_.record(session, run); });
  }
  Result<void> record_all(SessionId session, std::span<const RunRecord> runs) override {
    return attempt([&] { writer_.record_all(session, runs); });
  }
  Result<void> record_functions(SessionId session,
                                std::span<const FunctionsRecord> traces) override {
    return attempt([&] { writer_.record_functions(session, traces); });
  }
  Result<void> suppress(SessionId session, const TestId& test,
                        const std::string& signature) override {
    return attempt([&] { writer_.suppress(session, test, signature); });
  }
  Result<void> end_session(SessionId session) override {
    return attempt([&] { writer_.end_session(session); });
  }
  Result<void> stop_session(SessionId session) override {
    return attempt([&] { writer_.stop_session(session); });
  }

  Result<void> remember_target(const TargetRecord& target) override {
    return attempt([&] { unflake::remember_target(*database_, project_, target); });
  }
  Result<std::optional<TargetRecord>> find_target(const std::string& name) override {
    return attempt([&] { return unflake::find_target(*database_, project_, name); });
  }

  Result<std::vector<TestSummary>> summarise(const std::string& pattern, size_t most) override {
    return attempt([&] { return reader_.summarise(pattern, most); });
  }
  Result<std::optional<TestSummary>> summarise_test(const TestId& test) override {
    return attempt([&] { return reader_.summarise_test(test); });
  }
  Result<std::vector<TestSummary>> summarise_tests(std::span<const TestId> tests) override {
    return attempt([&] { return reader_.summarise_tests(tests); });
  }
  Result<std::vector<RecentRun>> recent_runs(const TestId& test, size_t most) override {
    return attempt([&] { return reader_.recent_runs(test, most); });
  }
  Result<std::vector<RecentRun>> recent_trials(const TestId& test, const std::string& purpose,
                                               size_t most) override {
    return attempt([&] { return reader_.recent_trials(test, purpose, most); });
  }
  Result<FunctionTraces> latest_functions(const std::string& pattern) override {
    return attempt([&] { return unflake::latest_functions(*database_, project_, pattern); });
  }
  Result<std::vector<TestId>> find_tests(const std::string& pattern, size_t most) override {
    return attempt([&] { return reader_.find_tests(pattern, most); });
  }
  Result<std::optional<std::string>> latest_output(const TestId& test,
                                                   const std::string& signature) override {
    return attempt([&] { return reader_.latest_output(test, signature); });
  }
  Result<RunCounts> count_runs(const TestId& test, const std::string& signature,
                               const Window& window) override {
    return attempt([&] { return reader_.count_runs(test, signature, window); });
  }
  Result<std::optional<LastFailures>> last_failures(const SessionQuestion& question) override {
    return attempt([&] { return reader_.last_failures(question); });
  }

  LifecycleStore& lifecycle() override { return lifecycle_; }

  Result<RetentionCount> forget(const Retention& retention, TimePoint now) override {
    return attempt([&] {
      writer_.settle_everything();
      return forget_runs(*database_, project_, retention, now);
    });
  }

  Result<void> visit(const Visitor& visitor) override {
    const auto visited = attempt([&] { return visit_history(*database_, project_, visitor); });
    return visited ? *visited : visited.error();
  }
  Result<std::optional<TimePoint>> forgotten_before() override {
    return attempt([&] { return unflake::forgotten_before(*database_, project_); });
  }

 private:
  std::unique_ptr<Database> database_;
  int64_t project_;
  Writer writer_;
  Reader reader_;
  SqliteLifecycle lifecycle_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const StoreAddress& address, Duration patience) {
  return attempt([&]() -> std::unique_ptr<Store> {
    auto database = open_history(address.url, patience);
    const int64_t project = make_project_row(*database, address.project);
    return std::make_unique<SqliteStore>(std::move(database), project);
  });
}

Result<std::unique_ptr<Store>> open_sqlite_store_to_read(const StoreAddress& address,
                                                         Duration patience) {
  return attempt([&]() -> std::unique_ptr<Store> {
    auto database = open_history_to_read(address.url, patience);
    const int64_t project = project_row(*database, address.project);
    return std::make_unique<SqliteStore>(std::move(database), project);
  });
}

}  // namespace unflake
