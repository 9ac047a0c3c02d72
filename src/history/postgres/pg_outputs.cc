#include "history/postgres/pg_outputs.h"

#include "history/store.h"
#include "util/capture.h"
#include "util/hexadecimal.h"

namespace unflake {
namespace {

constexpr int64_t slots = 20;
constexpr int64_t outputs_per_test = 200;  // for the test whose every failure has another signature
constexpr int64_t pause_us = 1'000'000;
constexpr size_t most_series = 100'000;

}  // namespace

bool PgOutputs::wants(const RunRow& run) {
  if (series_.size() > most_series) series_.clear();
  Series& series = series_[{run.test, run.signature}];
  if (series.kept >= slots && run.started_us - series.last_us < pause_us) return false;
  series = {series.kept + 1, run.started_us};
  return true;
}

// The slots of a signature are used in turn, so that the newest output takes the place of the
// oldest. Of more than there are slots for, the last ones stay.
void PgOutputs::keep(const std::vector<KeptOutput>& outputs) {
  if (outputs.empty()) return;
  std::vector<int64_t> tests, signatures, started;
  std::vector<std::string> bytes;
  for (const auto& [run, output] : outputs) {
    tests.push_back(run.test);
    signatures.push_back(run.signature);
    started.push_back(run.started_us);
    bytes.push_back("\\x" + hexadecimal(cut_middle(output, longest_kept_output)));
  }
  connection_.run(R"sql(
      WITH numbered AS (
        SELECT *, row_number() OVER (PARTITION BY test, signature ORDER BY started_us) AS number,
               count(*) OVER (PARTITION BY test, signature) AS count
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])
          AS given (test, signature, started_us, output))
      INSERT INTO outputs (test, signature, slot, started_us, output)
      SELECT test, signature, (number + coalesce(
               (SELECT slot FROM outputs WHERE outputs.test = numbered.test
                  AND outputs.signature = numbered.signature
                ORDER BY started_us DESC, slot DESC LIMIT 1), -1)) % $5::bigint AS slot,
             started_us, output::bytea
      FROM numbered WHERE number > count - $5::bigint
      ORDER BY 1, 2, 3
      ON CONFLICT (test, signature, slot) DO UPDATE
        SET started_us = excluded.started_us, output = excluded.output)sql",
                  tests, signatures, started, bytes, slots);
  connection_.run(R"sql(
      DELETE FROM outputs USING (
        SELECT test, signature, slot,
               row_number() OVER (PARTITION BY test ORDER BY started_us DESC) AS number
        FROM outputs WHERE test = ANY ($1::bigint[])) AS old
      WHERE number > $2::bigint AND (outputs.test, outputs.signature, outputs.slot)
            = (old.test, old.signature, old.slot))sql",
                  tests, outputs_per_test);
}

}  // namespace unflake
