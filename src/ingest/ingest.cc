#include "ingest/ingest.h"

#include <algorithm>
#include <functional>

#include "ingest/report_reader.h"
#include "store/values.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t longest_kept_message = 1000;
constexpr size_t most_tests = 1'000'000;
constexpr uint8_t has_passed = 1, has_failed = 2;

uint64_t hash_of(const TestId& test) {
  constexpr uint64_t odd = 0x9e3779b97f4a7c15;
  const std::hash<std::string_view> hash;
  return hash(test.target) * odd + hash(test.name);
}

Outcome outcome_of(const RunRecord& run) {
  Outcome outcome;
  outcome.kind = run.outcome;
  outcome.duration = run.duration;
  outcome.signature = run.signature;
  if (!run.failure) return outcome;
  outcome.failures.push_back(*run.failure);
  Failure& kept = outcome.failures.front();
  for (std::string* text : {&kept.message, &kept.expression, &kept.function})
    *text = shorten(*text, longest_kept_message);
  return outcome;
}

// Without a signature it is never taken for a known failure.
Outcome outcome_of_others() {
  Outcome outcome;
  outcome.kind = OutcomeKind::fail;
  outcome.failures.emplace_back();
  outcome.failures.front().kind = FailureKind::assertion;
  outcome.failures.front().message = "other failures, each different";
  return outcome;
}

}  // namespace

void FlakyTests::add(std::span<const RunRecord> runs) {
  for (const RunRecord& run : runs) {
    if (run.outcome == OutcomeKind::skipped) continue;
    const uint64_t test = hash_of(run.test);
    if (seen_.size() >= most_tests && !seen_.contains(test)) continue;
    uint8_t& seen = seen_[test];
    const uint8_t before = seen;
    seen |= is_failing(run.outcome) ? has_failed : has_passed;
    count_ += seen != before && seen == (has_passed | has_failed);
  }
}

void BuildResults::add(SessionId session, std::span<const RunRecord> runs) {
  for (const RunRecord& run : runs)
    if (is_failing(run.outcome))
      add_failure(session, run);
    else
      add_other(run);
}

void BuildResults::add_failure(SessionId session, const RunRecord& run) {
  if (failed_.size() >= bounds_.failed_tests && !failed_.contains(run.test)) {
    ++failures_left_out_;
    return;
  }
  FailedTest& test = failed_[run.test];
  auto& failures = test.failures;
  auto seen = std::ranges::find_if(failures, [&](const SeenFailure& one) {
    return one.outcome.signature == run.signature && one.outcome.kind == run.outcome;
  });
  if (seen == failures.end() && failures.size() > bounds_.failures) seen = failures.end() - 1;
  if (seen == failures.end()) {
    const bool is_full = failures.size() == bounds_.failures;
    failures.push_back({is_full ? outcome_of_others() : outcome_of(run), 0, {}});
    seen = failures.end() - 1;
  }
  ++test.runs;
  if (run.duration != unknown_duration) test.latest = run.duration;
  ++seen->runs;
  seen->sessions.insert(session);
}

void BuildResults::add_other(const RunRecord& run) {
  const auto failed = failed_.find(run.test);
  if (failed != failed_.end() && run.duration != unknown_duration)
    failed->second.latest = run.duration;
  const uint64_t hash = hash_of(run.test);
  auto found = others_.find(hash);
  if (found == others_.end()) {
    if (others_.size() >= bounds_.tests && failed == failed_.end()) {
      ++passes_left_out_;
      return;
    }
    found = others_.emplace(hash, Passes()).first;
  }
  ++(run.outcome == OutcomeKind::pass ? found->second.passes : found->second.skips);
}

Tally BuildResults::tally_of(const TestId& test) const {
  Tally tally;
  if (const auto failed = failed_.find(test); failed != failed_.end())
    tally.failures = failed->second.runs;
  if (const auto other = others_.find(hash_of(test)); other != others_.end()) {
    tally.passes = static_cast<int>(other->second.passes);
    tally.skips = static_cast<int>(other->second.skips);
  }
  return tally;
}

BuildResults::TestCounts BuildResults::others() const {
  std::set<uint64_t> failed;
  for (const auto& [test, seen] : failed_) failed.insert(hash_of(test));
  TestCounts counts;
  for (const auto& [hash, other] : others_) {
    counts.passes += other.passes;
    counts.skips += other.skips;
    if (!failed.contains(hash)) ++(other.passes > 0 ? counts.passed : counts.skipped);
  }
  return counts;
}

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
  // A time from the report, else after the run before.
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
        usage_error(std::string(not_a_test_report), source.name,
                    "give the JUnit XML that the test runner writes, or CTest's Test.xml");
  return report;
}

namespace {

constexpr size_t batch_runs = 10'000;
constexpr size_t batch_bytes = 16 * 1024 * 1024;

size_t weight_of(const RunRecord& run) {
  const size_t told = run.failure ? run.failure->message.size() : 0;
  return sizeof run + run.test.name.size() + run.output.size() + told;
}

// Collects runs for the store, which is much faster with many at a time.
class Batch {
 public:
  Batch(Store& store, SessionId session, const SeeRuns& see)
      : store_(store), session_(session), see_(see) {
    runs_.reserve(batch_runs);
  }

  Result<void> add(std::span<RunRecord> runs) {
    for (RunRecord& run : runs) {
      bytes_ += weight_of(run);
      runs_.push_back(std::move(run));
      if (runs_.size() < batch_runs && bytes_ < batch_bytes) continue;
      if (const auto written = write(); !written) return written;
    }
    return {};
  }

  Result<void> write() {
    if (runs_.empty()) return {};
    const auto recorded = store_.record_all(session_, runs_);
    if (!recorded) return recorded;
    if (see_) see_(session_, runs_);
    runs_.clear();
    bytes_ = 0;
    return {};
  }

 private:
  Store& store_;
  const SessionId session_;
  const SeeRuns& see_;
  std::vector<RunRecord> runs_;
  size_t bytes_ = 0;
};

// Finds the session that a report of unflake's own names, which comes before the first case.
class OwnSessionFinder : public XmlHandler {
 public:
  void start(std::string_view element, const XmlAttributes& attributes) override {
    if (!begun_ && attributes.value("name") != "unflake") stop();
    if (element == "testcase") stop();
    begun_ = true;
    if (element != "property" || attributes.value("name") != "unflake.session") return;
    uuid.assign(attributes.value("value").substr(0, longest_uuid));
    stop();
  }
  void end(std::string_view) override {}
  void text(std::string_view) override {}
  const std::optional<Error>& failed() const override { return stopped_; }

  std::string uuid;

 private:
  static constexpr size_t longest_uuid = 64;
  void stop() { stopped_ = usage_error("enough was read"); }

  bool begun_ = false;
  std::optional<Error> stopped_;
};

// Empty: it is not unflake's, or the history has no such session.
Result<std::string> known_session_in(const ReportFile& file, Store& store) {
  auto bytes = file.bytes();
  if (!bytes) return bytes.error();
  OwnSessionFinder finder;
  (void)read_xml(std::move(*bytes), file.name(), finder);
  if (finder.uuid.empty()) return std::string();
  const auto known = store.find_session(finder.uuid);
  if (!known) return known.error();
  return *known ? finder.uuid : std::string();
}

struct OpenedSession {
  SessionId id = 0;
  TimePoint started;  // as it was recorded first, by anyone
  bool was_known = false;
};

Result<OpenedSession> open_session(const SessionRecord& record, Store& store) {
  const auto before = store.find_session(record.uuid);
  if (!before) return before.error();
  const auto id = store.begin_session(record);
  if (!id) return id.error();
  const auto started = store.find_session(record.uuid);
  if (!started) return started.error();
  return OpenedSession{*id, started->value_or(record.started), before->has_value()};
}

}  // namespace

std::string session_uuid_of(const ReportFile& file, const IngestSettings& settings) {
  ContentHash hash;
  hash.add_field(settings.project);
  hash.add_field(settings.surroundings.build);
  hash.add_field(settings.surroundings.commit);
  hash.add_field(settings.origin.target);
  hash.add_field(file.hash());
  return std::move(hash).hex().substr(0, 32);
}

Result<IngestedReport> ingest(const ReportFile& file, const IngestSettings& settings, Store& store,
                              const SeeRuns& see) {
  const auto own = known_session_in(file, store);
  if (!own) return own.error();
  const auto bytes = file.bytes();
  if (!bytes) return bytes.error();
  SessionRecord record;
  record.started = settings.modified.value_or(file.modified());
  record.surroundings = settings.surroundings;
  record.command_line = settings.command_line;
  record.uuid = own->empty() ? session_uuid_of(file, settings) : *own;
  const auto session = open_session(record, store);
  if (!session) return session.error();
  Batch batch(store, session->id, see);
  const ReportSource source{file.name(), settings.origin, session->started};
  const TakeRuns look = [&](std::span<RunRecord> runs) {
    if (see) see(session->id, runs);
    return Result<void>();
  };
  const TakeRuns keep = [&](std::span<RunRecord> runs) { return batch.add(runs); };
  auto report = read_results(*bytes, source, own->empty() ? keep : look);
  if (!report) return report.error();
  if (!own->empty()) return IngestedReport{std::move(*report), true, true};
  if (const auto written = batch.write(); !written) return written.error();
  // Housekeeping: if it fails, the runs are safe and the end of the next session does it.
  (void)store.end_session(session->id);
  const bool is_none = report->refused && report->counts.cases == 0;
  return IngestedReport{std::move(*report), session->was_known && !is_none};
}

}  // namespace unflake
