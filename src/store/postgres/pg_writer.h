#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/postgres/pg_connection.h"
#include "store/postgres/pg_names.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {

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

  // No, when a test fails again and again and enough of that has been kept a moment ago.
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

}  // namespace unflake
