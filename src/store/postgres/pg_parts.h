#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/postgres/pg_connection.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {

// The rows of a project's tests, and of signatures. Makes those that are missing, many
// at once and always in the same order, so that writers cannot wait for each other in a circle.
class PgNames {
 public:
  PgNames(PgConnection& connection, int64_t project) : connection_(connection), project_(project) {}

  std::vector<RunRow> rows_of(SessionId session, std::span<const RunRecord> runs);
  int64_t test_row(const TestId& test);
  int64_t signature_row(const std::string& signature);

 private:
  void learn_tests(std::vector<TestId> tests);
  std::vector<TestId> look_up(std::vector<TestId> tests);
  void learn_signatures(std::span<const RunRecord> runs);
  void forget_what_may_be_wrong();

  PgConnection& connection_;
  int64_t project_;
  int generation_ = 0;
  std::map<TestId, int64_t> tests_;
  std::map<std::string, int64_t> signatures_;
};

// Tests are the rows of the traces, in their order.
void insert_functions(PgConnection& connection, int64_t project, SessionId session,
                      std::span<const FunctionsRecord> traces, const std::vector<int64_t>& tests);

FunctionTraces latest_functions(PgConnection& connection, int64_t project,
                                const std::string& pattern);

// But for the newest one of each test. Then sets that no trace has, and names that no set has.
int64_t forget_function_traces(PgConnection& connection, int64_t project, int64_t before_us);

// The sums over the failures of a session. They are made anew from the session's runs of the
// tests concerned, which are few, so that nothing can add up wrongly.
void count_incidents(PgConnection& connection, int64_t session, const std::vector<int64_t>& tests);

// The same for the sessions among these runs that have not ended.
void count_incidents_of_open_sessions(PgConnection& connection, std::span<const RunRow> runs);

// For a session that ended: counts all of its incidents again, and finds out by the sessions that
// have the same build or clean commit which failures are flaky, theirs and its own.
void settle_incidents(PgConnection& connection, int64_t session);

// Answers what flaky tests do to builds. A session is in a window when it began in it.

std::vector<FlakyFailure> flaky_failures(PgConnection& connection, int64_t project,
                                         const Window& window, size_t most);

int64_t count_suppressed_builds(PgConnection& connection, int64_t project, const TestId& test,
                                const std::string& signature, const Window& window);

std::vector<Prevalence> prevalence(PgConnection& connection, const Window& window);

// The small tables: what people and commands did about flaky tests, and where targets are.

void note_step(PgConnection& connection, int64_t test, const LifecycleStep& step);
std::vector<LifecycleStep> read_lifecycle(PgConnection& connection, int64_t project,
                                          const Window& window);

std::vector<CauseRecord> read_causes(PgConnection& connection, int64_t project);
int64_t save_cause(PgConnection& connection, int64_t project, const CauseRecord& cause);

void remember_target(PgConnection& connection, int64_t project, const TargetRecord& target);
std::optional<TargetRecord> find_target(PgConnection& connection, int64_t project,
                                        const std::string& name);

// Inside a transaction. The rows are of the trials, in their order, and lack only their plans.
void insert_trials(PgConnection& connection, std::span<const RunRecord> trials,
                   std::vector<RunRow> rows);

// Of rows that begin with: start, outcome, duration, attempt, signature, commit, branch, machine.
std::vector<RecentRun> recent_runs_in(const PgRows& rows);

// Newest first.
std::vector<RecentRun> recent_trials(PgConnection& connection, int64_t test,
                                     const std::string& purpose, size_t most);

// Deletes plans that no trial is of.
void forget_unused_plans(PgConnection& connection);

struct NamedTest {
  int64_t row = 0;
  TestId id;
};

// The tests of a project that a glob matches, least reliable first; at least the first `most`.
std::vector<NamedTest> rank_tests(PgConnection& connection, int64_t project,
                                  const std::string& pattern, size_t most);

// In the given order, without tests that never ran. Tests with up to `exact_up_to` runs get exact
// quantiles, which takes reading all of the runs. A few queries answer for all tests together.
std::vector<TestSummary> summarise_tests(PgConnection& connection,
                                         const std::vector<NamedTest>& tests, int64_t exact_up_to);

// Answers questions about a project's tests, each from one state of the database.
class PgReader {
 public:
  PgReader(PgConnection& connection, int64_t project)
      : connection_(connection), project_(project) {}

  std::optional<TimePoint> find_session(const std::string& uuid);
  std::vector<TestSummary> summarise(const std::string& pattern, size_t most);
  std::optional<TestSummary> summarise_test(const TestId& test);
  std::vector<TestSummary> summarise_tests(std::span<const TestId> tests);
  std::vector<RecentRun> recent_runs(const TestId& test, size_t most);
  std::vector<RecentRun> recent_trials(const TestId& test, const std::string& purpose, size_t most);
  std::vector<TestId> find_tests(const std::string& pattern, size_t most);
  std::optional<std::string> latest_output(const TestId& test, const std::string& signature);
  RunCounts count_runs(const TestId& test, const std::string& signature, const Window& window);
  std::optional<LastFailures> last_failures(const SessionQuestion& question);

 private:
  std::optional<int64_t> find_test(const TestId& test);

  PgConnection& connection_;
  int64_t project_;
};

Result<void> visit_history(PgConnection& connection, int64_t project,
                           const Store::Visitor& visitor);

// Adds runs to the sums over tests, when enough of them wait and nobody else does it.
void fold_when_due(PgConnection& connection);
void fold_everything(PgConnection& connection);

struct KeptOutput {
  RunRow run;
  std::string output;
};

// The outputs of failing runs: the newest ones of each signature of a test. Failures with the same
// signature look alike, so few outputs tell as much as all of them.
class PgOutputs {
 public:
  explicit PgOutputs(PgConnection& connection) : connection_(connection) {}

  // False when a test fails again and again, and enough of that was kept a moment ago.
  bool wants(const RunRow& run);
  void keep(const std::vector<KeptOutput>& outputs);

 private:
  struct Series {
    int64_t kept = 0, last_us = 0;
  };
  PgConnection& connection_;
  std::map<std::pair<int64_t, int64_t>, Series> series_;  // by test and signature
};

RetentionCount forget_runs(PgConnection& connection, int64_t project, const Retention& retention,
                           TimePoint now);

std::optional<TimePoint> forgotten_before(PgConnection& connection, int64_t project);

// Puts sessions and runs of a project into the database. Everything may be done again: whoever
// does not know whether it has happened repeats it.
class PgWriter {
 public:
  PgWriter(PgConnection& connection, int64_t project);

  SessionId begin_session(const SessionRecord& session, const std::string& uuid);
  void record(SessionId session, const RunRecord& run);
  void record_all(SessionId session, std::span<const RunRecord> runs);
  void record_functions(SessionId session, std::span<const FunctionsRecord> traces);
  void suppress(SessionId session, const TestId& test, const std::string& signature);
  void end_session(SessionId session);
  void stop_session(SessionId session);

  int64_t test_row(const TestId& test) { return names_.test_row(test); }

 private:
  void forget_session(SessionId session);
  struct Uncounted {
    int64_t counted = 0, since = 0;
  };
  std::vector<RunRow> insert(std::vector<RunRow> rows);
  std::vector<RunRow> insert_with_output(const RunRecord& run, const RunRow& row);
  void keep_outputs(std::span<const RunRecord> runs, const std::vector<RunRow>& rows,
                    const std::vector<RunRow>& added);
  bool is_time_to_count(int64_t session, int64_t test);
  void lock_session(SessionId session);
  void require_session(SessionId session);
  void fold_after(int64_t runs);

  PgConnection& connection_;
  int64_t project_;
  PgNames names_;
  PgOutputs outputs_;
  std::map<std::pair<int64_t, int64_t>, Uncounted> uncounted_;  // by session and test
  std::pair<SessionId, int> checked_{-1, -1};  // a session of this project, in which connection
  int64_t unfolded_ = 0;
};

// Refuses a server or a database that a history cannot be in. Throws PgFailure, as all of these.
void check_server(const PgConnection& connection, int version, const std::string& encoding);

// Makes the tables, or brings them up to date. Whoever comes at the same time waits for the first.
void make_schema(PgConnection& connection);
void require_newest_schema(PgConnection& connection);

int64_t make_project(PgConnection& connection, const std::string& name);
// A number that no project has when there is none of that name.
int64_t find_project(PgConnection& connection, const std::string& name);

Result<std::unique_ptr<Store>> open_postgres_store(const StoreAddress& address, Duration patience);
Result<std::unique_ptr<Store>> open_postgres_store_to_read(const StoreAddress& address,
                                                           Duration patience);

}  // namespace unflake
