#pragma once

#include <functional>
#include <string>

#include "ingest/read_results.h"
#include "ingest/report_file.h"
#include "store/store.h"

namespace unflake {

// What a report does not tell of itself.
struct IngestSettings {
  std::string project;  // of the store: two projects may build the same commit and get one report
  ReportOrigin origin;
  Surroundings surroundings;
  std::string command_line;
  std::optional<TimePoint> modified;  // when the report was written; none: as the file says
};

struct IngestedReport : ReadReport {
  bool was_known = false;  // taken in before, wholly or in part
  bool is_own = false;     // unflake wrote it, of a session that is in the history
};

// Sees every run behind the store, when it is safe there.
using SeeRuns = std::function<void(SessionId session, std::span<const RunRecord> runs)>;

// Takes a report into the history as a session of its own. The session is known by the build, the
// commit, the target and the report's contents: what is taken in twice counts once, whatever became
// of the file's times, and an ingestion that was interrupted is completed by the next. What unflake
// wrote itself of a session that is in this history is only read. An error means that the history
// could not be written.
Result<IngestedReport> ingest(const ReportFile& file, const IngestSettings& settings, Store& store,
                              const SeeRuns& see = nullptr);

std::string session_uuid_of(const ReportFile& file, const IngestSettings& settings);

}  // namespace unflake
