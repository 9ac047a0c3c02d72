#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "history/postgres/pg_connection.h"
#include "history/store.h"

namespace unflake {

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

}  // namespace unflake
