#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/sqlite/database.h"
#include "store/sqlite/sqlite_parts.h"
#include "store/store.h"

namespace unflake {

// What a project's people and commands did about its tests, and its targets.

void note_step(Database& database, int64_t test, const LifecycleStep& step);
std::vector<LifecycleStep> read_lifecycle(Database& database, int64_t project,
                                          const Window& window);

std::vector<CauseRecord> read_causes(Database& database, int64_t project);
int64_t save_cause(Database& database, int64_t project, const CauseRecord& cause);

void remember_target(Database& database, int64_t project, const TargetRecord& target);
std::optional<TargetRecord> find_target(Database& database, int64_t project,
                                        const std::string& name);

// See open_store and open_store_to_read.
Result<std::unique_ptr<Store>> open_sqlite_store(const StoreAddress& address, Duration patience);
Result<std::unique_ptr<Store>> open_sqlite_store_to_read(const StoreAddress& address,
                                                         Duration patience);

// The outputs of failing runs: the newest ones of each signature of a test. Failures with the same
// signature look alike, so few outputs tell as much as all of them.
class Outputs {
 public:
  explicit Outputs(Database& database);

  // No, when a test fails again and again and enough of that has been kept a moment ago: writing
  // outputs costs more than everything else about a run.
  bool wants(int64_t test, int64_t signature, int64_t started_us) const;
  void keep(const RunRow& run, std::string_view output);
  void forget_series() { series_.clear(); }

 private:
  struct Series {
    int64_t next_slot = 0;
    int64_t kept = 0;
    int64_t last_us = 0;
  };
  int64_t first_slot(const RunRow& run);
  void make_room(int64_t test);

  Database& database_;
  Statement replace_;
  std::map<std::pair<int64_t, int64_t>, Series> series_;  // by test and signature
};

// Deletes what a policy does not keep, in short transactions: others may write meanwhile. All runs
// must have been placed.
RetentionCount forget_runs(Database& database, int64_t project, const Retention& retention,
                           TimePoint now);

std::optional<TimePoint> forgotten_before(Database& database, int64_t project);

// Puts sessions and runs of a project into the database. Remembers the rows of tests, plans and
// signatures that it has seen, so that a run of a known test is one insert.
class Writer {
 public:
  Writer(Database& database, int64_t project);

  SessionId begin_session(const SessionRecord& session);
  void record(SessionId session, const RunRecord& run);
  void record_all(SessionId session, std::span<const RunRecord> runs);
  void record_functions(SessionId session, std::span<const FunctionsRecord> traces);
  void suppress(SessionId session, const TestId& test, const std::string& signature);
  void end_session(SessionId session);
  void stop_session(SessionId session);

  void note(const LifecycleStep& step);

  // Brings every run into the sums and among the runs of its test.
  void settle_everything();

 private:
  struct Known {  // null: not seen before
    const int64_t* test;
    const int64_t* signature;
  };
  Known known(const RunRecord& run) const;
  void in_transaction(const std::function<void()>& work);
  void record_unknown(SessionId session, const RunRecord& run);
  void stage_all(SessionId session, std::span<const RunRecord> runs);
  void insert_trials(SessionId session, std::span<const RunRecord> trials);
  void keep_outputs(std::span<const RunRecord> runs, std::span<const RunRow> rows,
                    const std::vector<RunRow>& added);
  bool keeps_output(const RunRecord& run, const RunRow& row) const;
  void insert_run(const RunRow& run);
  RunRow row_of(SessionId session, const RunRecord& run);
  void require_session(SessionId session);
  int64_t test_row(const TestId& test);
  int64_t signature_row(const RunRecord& run);
  void settle_fresh();
  void place_when_due(int64_t runs, int64_t sessions);

  Database& database_;
  int64_t project_;
  Statement insert_run_;
  Statement find_session_;
  Outputs outputs_;
  Staging staging_;
  Flakiness flakiness_;
  Placement placement_;
  TrialsTable trials_;
  ExecutedTable executed_;
  RowCache<TestId> tests_;
  RowCache<std::string> signatures_;
  int64_t fresh_ = 0;  // recorded one by one since the last time that they were staged
};

}  // namespace unflake
