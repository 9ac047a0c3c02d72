#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

#include "store/store.h"

namespace unflake {

// A history as the first version of the schema left it: folded runs, fresh ones, and their sums.
inline constexpr const char* first_version_data = R"sql(
    INSERT INTO tests VALUES (7, 'suite', 't'), (9, 'suite', 'u');
    INSERT INTO targets VALUES ('suite', 'gtest', 'build/suite', x'2d2d6100');
    INSERT INTO sessions VALUES
      (3, 'first', 1700000000000000, NULL, 'c1', 'main', 0, 'm', '0.1', 'unflake run', NULL),
      (4, 'second', 1700000100000000, 1, 'c1', 'main', 0, 'm', '0.1', 'unflake run', 5),
      (5, 'third', 1700000200000000, 1, 'c1', 'main', 1, 'm', '0.1', 'unflake run', 5);
    INSERT INTO signatures VALUES (2, 'aa', 1, 'a.cc', 1, 'f', 'a == b', 'no');
    INSERT INTO plans VALUES (6, 'plan');
    INSERT INTO runs VALUES
      (7, 1700000001000000, 3, 1, 10000, 1, 2, 0),
      (7, 1700000002000000, 3, 2, 20000, 0, 0, 0),
      (7, 1700000003000000, 3, 3, 40000, 0, 0, 0),
      (7, 1700000004000000, 3, 4, 80000, 1, 2, 6),
      (9, 1700000101000000, 4, 1, 10000, 1, 2, 0),
      (9, 1700000201000000, 5, 1, 10000, 0, 0, 0);
    INSERT INTO totals VALUES
      (7, 0, 0, 2, 60000, 20000, 40000, 1700000002000000, 3, 1700000003000000, 3),
      (7, 1, 2, 2, 90000, 10000, 80000, 1700000001000000, 3, 1700000004000000, 3),
      (9, 1, 2, 1, 10000, 10000, 10000, 1700000101000000, 4, 1700000101000000, 4),
      (9, 0, 0, 1, 10000, 10000, 10000, 1700000201000000, 5, 1700000201000000, 5);
    INSERT INTO fresh_runs VALUES (7, 1700000102000000, 4, 1, 10000, 0, 0, 0);
    INSERT INTO outputs VALUES (7, 2, 0, 1700000001000000, x'414243');
)sql";

inline void run_sql(const std::string& path, const std::string& statements) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
}

inline void make_first_history(const std::string& path) {
  run_sql(path, "PRAGMA journal_mode = WAL");
  run_sql(path, "BEGIN;" + migration(1, Dialect::sqlite) + first_version_data +
                    "PRAGMA application_id = 0x756e666b; PRAGMA user_version = 1; COMMIT");
}

}  // namespace unflake
