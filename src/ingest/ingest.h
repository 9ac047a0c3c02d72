#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/report_reader.h"
#include "store/store.h"
#include "util/time.h"

namespace unflake {

// How many tests both failed and passed, whatever reports and cases contain them. Tests are known
// by a hash of their id, and beyond a million of them new ones are left out.
class FlakyTests {
 public:
  void add(std::span<const RunRecord> runs);
  int64_t count() const { return count_; }

 private:
  std::unordered_map<uint64_t, uint8_t> seen_;
  int64_t count_ = 0;
};

// The results of a build, whatever reports they come from, test by test. For a test that never
// failed two counts are kept under a hash of its id, so memory grows only with failures.
class BuildResults {
 public:
  struct Bounds {
    size_t tests = 1'000'000;  // about 50 MB
    size_t failed_tests = 20'000;
    size_t failures = 32;  // of one test, that differ
  };

  struct SeenFailure {
    Outcome outcome;  // of the first run that failed this way
    int runs = 0;
    std::set<SessionId> sessions;
  };
  struct FailedTest {
    std::vector<SeenFailure> failures;
    int runs = 0;                        // that failed
    Duration latest = unknown_duration;  // how long the last run took whose time is known
  };
  struct TestCounts {
    int passed = 0, skipped = 0;  // tests that never failed
    int64_t passes = 0, skips = 0;
  };

  BuildResults() = default;
  explicit BuildResults(Bounds bounds) : bounds_(bounds) {}

  void add(SessionId session, std::span<const RunRecord> runs);

  const std::map<TestId, FailedTest>& failed() const { return failed_; }
  Tally tally_of(const TestId& test) const;
  TestCounts others() const;

  const Bounds& bounds() const { return bounds_; }
  // What the bounds left out.
  int64_t failures_left_out() const { return failures_left_out_; }
  int64_t passes_left_out() const { return passes_left_out_; }

 private:
  struct Passes {
    uint32_t passes = 0, skips = 0;
  };

  void add_failure(SessionId session, const RunRecord& run);
  void add_other(const RunRecord& run);

  Bounds bounds_;
  std::map<TestId, FailedTest> failed_;
  std::unordered_map<uint64_t, Passes> others_;  // by hash of the id; of failed tests too
  int64_t failures_left_out_ = 0, passes_left_out_ = 0;
};

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

// Why other XML is refused; a folder may contain some.
inline constexpr std::string_view not_a_test_report = "is XML, but not a test report";

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
