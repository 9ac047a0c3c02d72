#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "ingest/case_runs.h"
#include "ingest/report_file.h"
#include "store/store.h"

namespace unflake {

struct ReportSource {
  std::string name;  // for messages
  ReportOrigin origin;
  TimePoint fallback_start;  // of runs whose report has no time
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
  std::optional<Error> refused;  // why the rest was not read; what came before it was delivered
};

// The runs of one case, first try first. Its error ends the reading and becomes the result's.
using TakeRuns = std::function<Result<void>(std::span<RunRecord> runs)>;

// Reads a report case by case. No two runs of a report have the same start, so that two cases of
// the same name are two runs, and the same ones whenever the report is read again.
Result<ReadReport> read_results(ByteSource bytes, const ReportSource& source, const TakeRuns& take);

// What a report does not say about itself.
struct IngestSettings {
  std::string project;  // of the store: two projects may build the same commit and get one report
  ReportOrigin origin;
  Surroundings surroundings;
  std::string command_line;
  std::optional<TimePoint> modified;  // when the report was written; none: as the file says
};

struct IngestedReport : ReadReport {
  bool was_known = false;  // ingested before, wholly or in part
  bool is_own = false;     // unflake wrote it, of a session that is in the history
};

// Sees every run once it is safe in the store.
using SeeRuns = std::function<void(SessionId session, std::span<const RunRecord> runs)>;

// Adds a report to the history as its own session. The session is known by the build, the
// commit, the target and the report's contents: what is ingested twice counts once, whatever became
// of the file's times, and an ingestion that was interrupted is completed by the next. What unflake
// wrote itself of a session that is in this history is only read. An error means that the history
// could not be written.
Result<IngestedReport> ingest(const ReportFile& file, const IngestSettings& settings, Store& store,
                              const SeeRuns& see = nullptr);

std::string session_uuid_of(const ReportFile& file, const IngestSettings& settings);

}  // namespace unflake
