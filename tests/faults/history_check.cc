#include "faults/history_check.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <sstream>

#include "support/history_runs.h"

namespace unflake {

std::map<int64_t, int> recorded_seconds(const std::string& path,
                                        const std::vector<std::string>& names) {
  std::map<int64_t, int> seconds;
  const auto store = open_store({path});
  EXPECT_TRUE(store) << to_string(store.error());
  if (!store) return seconds;
  for (const std::string& name : names) {
    const auto runs = (*store)->recent_runs({"suite", name}, SIZE_MAX);
    EXPECT_TRUE(runs) << to_string(runs.error());
    if (!runs) continue;
    for (const RecentRun& run : *runs)
      ++seconds[std::chrono::duration_cast<std::chrono::seconds>(run.started - at_second(0))
                    .count()];
    const auto summary = (*store)->summarise_test({"suite", name});
    const int64_t counted = summary && *summary ? (*summary)->passes + (*summary)->failures : 0;
    EXPECT_EQ(counted, static_cast<int64_t>(runs->size())) << name;
  }
  return seconds;
}

std::string integrity(const std::string& path) {
  sqlite3* database = nullptr;
  sqlite3_stmt* check = nullptr;
  std::string found = "cannot check";
  if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK &&
      sqlite3_prepare_v2(database, "PRAGMA integrity_check", -1, &check, nullptr) == SQLITE_OK &&
      sqlite3_step(check) == SQLITE_ROW)
    found = reinterpret_cast<const char*>(sqlite3_column_text(check, 0));
  sqlite3_finalize(check);
  sqlite3_close(database);
  return found;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace unflake
