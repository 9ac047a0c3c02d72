#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/postgres/pg_connection.h"
#include "store/store.h"

namespace unflake {

// Tests are the rows of the traces, in their order.
void insert_functions(PgConnection& connection, int64_t project, SessionId session,
                      std::span<const FunctionsRecord> traces, const std::vector<int64_t>& tests);

FunctionTraces latest_functions(PgConnection& connection, int64_t project,
                                const std::string& pattern);

// But for the newest one of each test. Then sets that no trace has, and names that no set has.
int64_t forget_function_traces(PgConnection& connection, int64_t project, int64_t before_us);

}  // namespace unflake
