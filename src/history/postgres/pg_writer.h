#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "history/postgres/pg_connection.h"
#include "history/postgres/pg_names.h"
#include "history/postgres/pg_outputs.h"
#include "history/store.h"

namespace unflake {

// Puts sessions and runs of a project into the database. Everything may be done again: whoever
// does not know whether it has happened repeats it.
class PgWriter {
 public:
  PgWriter(PgConnection& connection, int64_t project);

  SessionId begin_session(const SessionRecord& session, const std::string& uuid);
  void record(SessionId session, const RunRecord& run);
  void record_all(SessionId session, std::span<const RunRecord> runs);
  void suppress(SessionId session, const TestId& test, const std::string& signature);
  void end_session(SessionId session);

  int64_t test_row(const TestId& test) { return names_.test_row(test); }

 private:
  std::vector<RunRow> insert(std::vector<RunRow> rows);
  void insert_with_failures(SessionId session, std::span<const RunRecord> runs,
                            const std::vector<RunRow>& rows);
  void keep_outputs(std::span<const RunRecord> runs, const std::vector<RunRow>& rows,
                    const std::vector<RunRow>& added);
  bool may_concern_incidents(const RunRow& row) const;
  void lock_session(SessionId session);
  void require_session(SessionId session);
  void fold_after(int64_t runs);

  PgConnection& connection_;
  int64_t project_;
  PgNames names_;
  PgOutputs outputs_;
  std::set<std::pair<int64_t, int64_t>> failed_;  // session and test
  std::pair<SessionId, int> checked_;             // a session of this project, in which connection
  int64_t unfolded_ = 0;
};

}  // namespace unflake
