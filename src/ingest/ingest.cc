#include "ingest/ingest.h"

#include "ingest/content_hash.h"

namespace unflake {
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

struct OpenedSession {
  SessionId id = 0;
  TimePoint started;  // as it was recorded first, by whomever
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
  const auto bytes = file.bytes();
  if (!bytes) return bytes.error();
  SessionRecord record;
  record.started = settings.modified.value_or(file.modified());
  record.surroundings = settings.surroundings;
  record.command_line = settings.command_line;
  record.uuid = session_uuid_of(file, settings);
  const auto session = open_session(record, store);
  if (!session) return session.error();
  Batch batch(store, session->id, see);
  const ReportSource source{file.name(), settings.origin, session->started};
  auto report =
      read_results(*bytes, source, [&](std::span<RunRecord> runs) { return batch.add(runs); });
  if (!report) return report.error();
  if (const auto written = batch.write(); !written) return written.error();
  // Housekeeping: should it fail, the runs are safe and the end of the next session does it.
  (void)store.end_session(session->id);
  return IngestedReport{std::move(*report), session->was_known};
}

}  // namespace unflake
