#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
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

}  // namespace unflake
