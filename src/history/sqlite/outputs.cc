#include "history/sqlite/outputs.h"

#include "history/store.h"
#include "util/capture.h"

namespace unflake {
namespace {

constexpr int64_t slots = 20;

// A limit for the test whose every failure has a signature of its own.
constexpr int64_t outputs_per_test = 200;

constexpr int64_t pause_us = 1'000'000;

// What is known of more series than this is forgotten, which costs some outputs more.
constexpr size_t most_series = 100'000;

}  // namespace

Outputs::Outputs(Database& database)
    : database_(database),
      replace_(database,
               "REPLACE INTO outputs (test, signature, slot, started_us, output)"
               " VALUES (?, ?, ?, ?, ?)") {}

bool Outputs::wants(int64_t test, int64_t signature, int64_t started_us) const {
  const auto found = series_.find({test, signature});
  if (found == series_.end() || found->second.kept < slots) return true;
  return started_us - found->second.last_us >= pause_us;
}

void Outputs::keep(const RunRow& run, std::string_view output) {
  if (series_.size() > most_series) series_.clear();
  const auto [at, is_new] = series_.try_emplace({run.test, run.signature});
  Series& series = at->second;
  if (is_new) series.next_slot = first_slot(run);
  replace_.run(run.test, run.signature, series.next_slot, run.started_us,
               Blob{cut_middle(std::string(output), longest_kept_output)});
  series = {.next_slot = (series.next_slot + 1) % slots,
            .kept = series.kept + 1,
            .last_us = run.started_us};
}

int64_t Outputs::first_slot(const RunRow& run) {
  Statement newest(database_,
                   "SELECT slot FROM outputs WHERE test = ? AND signature = ?"
                   " ORDER BY started_us DESC LIMIT 1");
  Query query(newest, run.test, run.signature);
  if (query.next()) return (query.integer(0) % slots + 1) % slots;
  make_room(run.test);
  return 0;
}

void Outputs::make_room(int64_t test) {
  Statement remove(database_,
                   "DELETE FROM outputs WHERE (test, signature, slot) IN"
                   " (SELECT test, signature, slot FROM outputs WHERE test = ?"
                   "  ORDER BY started_us DESC LIMIT -1 OFFSET ?)");
  remove.run(test, outputs_per_test - slots);
}

}  // namespace unflake
