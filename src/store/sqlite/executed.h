#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "store/sqlite/database.h"
#include "store/store.h"

namespace unflake {

// Puts what one run executed into the database, inside a transaction. Rows of names and of sets are
// never remembered beyond it: others forget those that nothing uses.
class ExecutedTable {
 public:
  ExecutedTable(Database& database, int64_t project);

  void insert(SessionId session, int64_t test, const FunctionsRecord& trace);

 private:
  int64_t function_row(const FunctionId& function);
  int64_t set_row(const std::string& members);

  Database& database_;
  int64_t project_;
  Statement find_function_, insert_function_, find_set_, insert_set_, insert_trace_;
};

FunctionTraces latest_functions(Database& database, int64_t project, const std::string& pattern);

// But for the newest one of each test. Then sets that no trace has, and names that no set has.
int64_t forget_function_traces(Database& database, int64_t project, int64_t before_us);

}  // namespace unflake
