#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>

#include "model/test.h"
#include "store/sqlite/database.h"
#include "store/summary.h"
#include "store/values.h"

namespace unflake {

struct NameHash {
  size_t operator()(const std::string& name) const { return std::hash<std::string>()(name); }
  size_t operator()(const TestId& test) const {
    return (*this)(test.name) ^ (*this)(test.target) * 31;
  }
};

// The rows of names that were seen. Begins anew when it holds much: whoever takes in millions of
// tests must not keep all their names in memory.
template <class Name>
class RowCache {
 public:
  const int64_t* find(const Name& name) const {
    const auto found = rows_.find(name);
    return found != rows_.end() ? &found->second : nullptr;
  }

  int64_t add(const Name& name, int64_t row) {
    constexpr size_t most_bytes = 64 * 1024 * 1024;
    const size_t size = bytes_of(name) + sizeof(Name) + 64;
    if (bytes_ + size > most_bytes) clear();
    bytes_ += size;
    rows_[name] = row;
    return row;
  }

  void clear() {
    rows_.clear();
    bytes_ = 0;
  }

 private:
  static size_t bytes_of(const std::string& name) { return name.size(); }
  static size_t bytes_of(const TestId& test) { return test.target.size() + test.name.size(); }

  std::unordered_map<Name, int64_t, NameHash> rows_;
  size_t bytes_ = 0;
};

RunRow read_run(const Query& query);  // of UNFLAKE_RUN_COLUMNS

// What the tables and the runs that are not in them yet say together; without the histograms of
// the tables.
Totals read_totals(Database& database);
Totals read_totals(Database& database, int64_t test);

// Adds them to what the tables `totals` and `histograms` hold.
class TotalsTables {
 public:
  explicit TotalsTables(Database& database);
  void add(const Totals& totals);

 private:
  Statement add_total_;
  Statement add_bucket_;
};

// The runs of one test in one session that the sums over sessions have: those in `staged_runs`, and
// those in `runs`, which are found by the stretch of time of `placed_sessions`.
class SessionRuns {
 public:
  explicit SessionRuns(Database& database);

  bool has_placed(int64_t session);
  bool holds(const RunRow& run);  // in `runs`
  int64_t passes(int64_t session, int64_t test);
  bool passed(int64_t session, int64_t test);

  // By start, then by attempt.
  std::optional<RunRow> before(const RunRow& run);
  std::optional<RunRow> after(const RunRow& run);

 private:
  std::optional<RunRow> nearest(Statement& staged, Statement& placed, const RunRow& run,
                                bool latest);

  Statement has_placed_, holds_;
  Statement passes_, passed_;
  Statement staged_before_, placed_before_, staged_after_, placed_after_;
};

// Keeps the sums over a session's runs, `session_totals` and `incidents`, exact whatever order runs
// come in. Every run goes through add() once, when it comes into `staged_runs`.
class SessionSums {
 public:
  SessionSums(Database& database, SessionRuns& stored);

  // Runs of one session, in the order of their key, which are in `staged_runs` already.
  void add(std::span<const RunRow> runs);

 private:
  struct Incident {
    int64_t outcome = 0, failures = 0, first_us = 0, last_us = 0, wasted_us = 0;
  };
  using Incidents = std::map<int64_t, Incident>;  // by signature

  void add_totals(std::span<const RunRow> runs);
  std::set<int64_t> failed_tests(int64_t session);
  void add_test(std::span<const RunRow> runs, bool failed_before);
  void add_waste(std::span<const RunRow> runs, Incidents& incidents);
  int64_t passes_of_failed(int64_t session, int64_t test);

  SessionRuns& stored_;
  Statement add_total_, failed_tests_, add_passes_, passes_, add_incident_;
};

}  // namespace unflake
