#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "ingest/byte_source.h"
#include "ingest/case_identity.h"
#include "store/store.h"

namespace unflake {

struct ReportSource {
  std::string name;  // for messages
  ReportOrigin origin;
  TimePoint fallback_start;  // of runs whose report tells no time
};

struct ResultCounts {
  int64_t cases = 0;
  int64_t runs = 0, passes = 0, failures = 0, skips = 0;
  int64_t flaky = 0;           // tests that failed and passed
  int64_t odd_times = 0;       // durations that made no sense
  int64_t packed_outputs = 0;  // of failures, that were left out
  bool operator==(const ResultCounts&) const = default;
};

struct ReadReport {
  ResultCounts counts;
  std::optional<Error> refused;  // why the rest was not read; what stood before it was given
};

// The runs of one case, first try first. An error of it ends the reading and is the result's.
using TakeRuns = std::function<Result<void>(std::span<RunRecord> runs)>;

// Reads a report case by case. No two runs of a report have the same start, so that two cases of
// the same name are two runs, and the same ones whenever the report is read again.
Result<ReadReport> read_results(ByteSource bytes, const ReportSource& source, const TakeRuns& take);

}  // namespace unflake
