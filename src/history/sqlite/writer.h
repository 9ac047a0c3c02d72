#pragma once

#include <map>
#include <string>

#include "history/sqlite/database.h"
#include "history/sqlite/outputs.h"
#include "history/sqlite/totals.h"
#include "history/store.h"

namespace unflake {

// Puts sessions and runs into the database. Remembers the rows of tests, plans and signatures that
// it has seen, so that a run of a known test is one insert.
class Writer {
 public:
  explicit Writer(Database& database);

  SessionId begin_session(const SessionRecord& session);
  void record(SessionId session, const RunRecord& run);
  void end_session(SessionId session);

 private:
  struct Known {  // null: not seen before
    const int64_t* test;
    const int64_t* plan;
    const int64_t* signature;
  };
  Known known(const RunRecord& run) const;
  void record_in_transaction(SessionId session, const RunRecord& run);
  bool keeps_output(const RunRecord& run, int64_t test, int64_t signature) const;
  void insert_run(const RunRow& run);

  int64_t test_row(const TestId& test);
  int64_t plan_row(const std::string& plan);
  int64_t signature_row(const RunRecord& run);

  Database& database_;
  Statement insert_run_;
  Outputs outputs_;
  std::map<TestId, int64_t> tests_;
  std::map<std::string, int64_t> plans_;
  std::map<std::string, int64_t> signatures_;
};

}  // namespace unflake
