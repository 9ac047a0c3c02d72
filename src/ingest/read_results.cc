#include "ingest/read_results.h"

#include <algorithm>

#include "ingest/build_results.h"
#include "ingest/case_runs.h"
#include "ingest/xml_reader.h"

namespace unflake {
namespace {

class ResultReader {
 public:
  ResultReader(const ReportSource& source, const TakeRuns& take)
      : source_(source), file_target_(target_from_path(source.origin.path)), take_(take) {}

  Result<void> take(const ReportedCase& reported, const CaseContext& context) {
    const CaseDialect dialect = dialect_of(reported, context);
    runs_of_case(reported, dialect, runs_);
    const TestId id = identity_of(reported, context, dialect, source_.origin, file_target_);
    place_in_time(reported, context);
    for (RunRecord& run : runs_) {
      run.test = id;
      count(run);
    }
    ++counts.cases;
    counts.odd_times += reported.time.is_odd;
    flaky_.add(runs_);
    counts.flaky = flaky_.count();
    const auto taken = take_(runs_);
    if (!taken) rejected = taken.error();
    return taken;
  }

  ResultCounts counts;
  std::optional<Error> rejected;

 private:
  // A time that the report tells, else behind the run before.
  void place_in_time(const ReportedCase& reported, const CaseContext& context) {
    const auto suite = suite_start(context);
    if (suite != suite_start_) next_ = std::max(next_, suite.value_or(next_));
    suite_start_ = suite;
    if (!begun_) next_ = suite.value_or(reported.timestamp.value_or(source_.fallback_start));
    begun_ = true;
    TimePoint start = std::max(next_, reported.timestamp.value_or(next_));
    for (RunRecord& run : runs_) {
      run.started = std::max(start, run.started);
      start = run.started + std::max(run.duration, Duration(1));
    }
    next_ = start;
  }

  static std::optional<TimePoint> suite_start(const CaseContext& context) {
    for (auto suite = context.suites.rbegin(); suite != context.suites.rend(); ++suite)
      if (suite->timestamp) return suite->timestamp;
    return std::nullopt;
  }

  void count(const RunRecord& run) {
    ++counts.runs;
    if (run.outcome == OutcomeKind::pass)
      ++counts.passes;
    else
      ++(run.outcome == OutcomeKind::skipped ? counts.skips : counts.failures);
  }

  const ReportSource& source_;
  const std::string file_target_;
  const TakeRuns& take_;
  std::vector<RunRecord> runs_;
  FlakyTests flaky_;
  std::optional<TimePoint> suite_start_;
  TimePoint next_;
  bool begun_ = false;
};

}  // namespace

Result<ReadReport> read_results(ByteSource bytes, const ReportSource& source,
                                const TakeRuns& take) {
  ResultReader reader(source, take);
  CaseHandler handler([&](const ReportedCase& reported, const CaseContext& context) {
    return reader.take(reported, context);
  });
  const auto read = read_xml(std::move(bytes), source.name, handler);
  if (reader.rejected) return *reader.rejected;
  ReadReport report{reader.counts, std::nullopt};
  report.counts.packed_outputs = handler.packed_outputs();
  if (!read)
    report.refused = read.error();
  else if (!handler.saw_report())
    report.refused =
        usage_error("is XML, but no test report", source.name,
                    "give the JUnit XML that the test runner writes, or CTest's Test.xml");
  return report;
}

}  // namespace unflake
