#include "store/postgres/postgres_store.h"

#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "store/attempt.h"
#include "store/postgres/pg_flaky.h"
#include "store/postgres/pg_fold.h"
#include "store/postgres/pg_lifecycle.h"
#include "store/postgres/pg_reader.h"
#include "store/postgres/pg_schema.h"
#include "store/postgres/pg_visit.h"
#include "store/postgres/pg_writer.h"
#include "store/values.h"

namespace unflake {
namespace {

using Cure = PgFailure::Cure;

// How often the same work is done again when the server asks for that, because others were in the
// way. A lost connection is made again only once: a server that is gone is not waited for here.
constexpr int most_repeats = 20;

void pause_before_repeat(int repeats) {
  thread_local std::minstd_rand random(std::random_device{}());
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % (2 * repeats + 1)));
}

// For work that may be done twice, also when nobody knows whether it was done.
template <class Work>
auto attempt_again(Work work) -> Result<decltype(work())> {
  return attempt([&] {
    bool reconnected = false;
    for (int repeats = 0;; ++repeats) {
      try {
        return work();
      } catch (const PgFailure& failure) {
        const bool again = failure.cure == Cure::repeat && repeats < most_repeats;
        const bool lost = failure.cure == Cure::reconnect && !std::exchange(reconnected, true);
        if (!again && !lost) throw;
      }
      pause_before_repeat(repeats);
    }
  });
}

class PostgresStore : public Store {
 public:
  PostgresStore(std::unique_ptr<PgConnection> connection, int64_t project, bool writes)
      : connection_(std::move(connection)),
        project_(project),
        writes_(writes),
        writer_(*connection_, project),
        reader_(*connection_, project) {}

  Result<SessionId> begin_session(const SessionRecord& session) override {
    const std::string uuid = session.uuid.empty() ? make_session_uuid() : session.uuid;
    return write([&] { return writer_.begin_session(session, uuid); });
  }
  Result<std::optional<TimePoint>> find_session(const std::string& uuid) override {
    return attempt_again([&] { return reader_.find_session(uuid); });
  }
  Result<void> record(SessionId session, const RunRecord& run) override {
    return write([&] { writer_.record(session, run); });
  }
  Result<void> record_all(SessionId session, std::span<const RunRecord> runs) override {
    return write([&] { writer_.record_all(session, runs); });
  }
  Result<void> suppress(SessionId session, const TestId& test,
                        const std::string& signature) override {
    return write([&] { writer_.suppress(session, test, signature); });
  }
  Result<void> end_session(SessionId session) override {
    return write([&] { writer_.end_session(session); });
  }
  Result<void> stop_session(SessionId session) override {
    return write([&] { writer_.stop_session(session); });
  }

  Result<void> remember_target(const TargetRecord& target) override {
    return write([&] { unflake::remember_target(*connection_, project_, target); });
  }
  Result<std::optional<TargetRecord>> find_target(const std::string& name) override {
    return attempt_again([&] { return unflake::find_target(*connection_, project_, name); });
  }

  Result<std::vector<TestSummary>> summarise(const std::string& pattern, size_t most) override {
    return attempt_again([&] { return reader_.summarise(pattern, most); });
  }
  Result<std::optional<TestSummary>> summarise_test(const TestId& test) override {
    return attempt_again([&] { return reader_.summarise_test(test); });
  }
  Result<std::vector<TestSummary>> summarise_tests(std::span<const TestId> tests) override {
    return attempt_again([&] { return reader_.summarise_tests(tests); });
  }
  Result<std::vector<RecentRun>> recent_runs(const TestId& test, size_t most) override {
    return attempt_again([&] { return reader_.recent_runs(test, most); });
  }
  Result<std::optional<std::string>> latest_output(const TestId& test,
                                                   const std::string& signature) override {
    return attempt_again([&] { return reader_.latest_output(test, signature); });
  }
  Result<RunCounts> count_runs(const TestId& test, const std::string& signature,
                               const Window& window) override {
    return attempt_again([&] { return reader_.count_runs(test, signature, window); });
  }
  Result<std::optional<LastFailures>> last_failures(const SessionQuestion& question) override {
    return attempt_again([&] { return reader_.last_failures(question); });
  }

  Result<std::vector<FlakyFailure>> flaky_failures(const Window& window, size_t most) override {
    return attempt_again(
        [&] { return unflake::flaky_failures(*connection_, project_, window, most); });
  }
  Result<int64_t> count_suppressed_builds(const TestId& test, const std::string& signature,
                                          const Window& window) override {
    return attempt_again([&] {
      return unflake::count_suppressed_builds(*connection_, project_, test, signature, window);
    });
  }
  Result<std::vector<Prevalence>> prevalence(const Window& window) override {
    return attempt_again([&] { return unflake::prevalence(*connection_, window); });
  }

  Result<void> note(const LifecycleEvent& event) override {
    return write([&] { note_event(*connection_, writer_.test_row(event.test), event); });
  }
  Result<std::vector<LifecycleEvent>> lifecycle(const Window& window) override {
    return attempt_again([&] { return read_lifecycle(*connection_, project_, window); });
  }
  Result<std::vector<CauseRecord>> causes() override {
    return attempt_again([&] { return read_causes(*connection_, project_); });
  }
  Result<int64_t> save_cause(const CauseRecord& cause) override {
    if (!writes_) return no_writing();
    const auto save = [&] { return unflake::save_cause(*connection_, project_, cause); };
    return cause.id == 0 ? attempt(save) : attempt_again(save);  // a new one must not come twice
  }

  Result<RetentionCount> forget(const Retention& retention, TimePoint now) override {
    if (!writes_) return no_writing();
    return attempt([&] {
      fold_everything(*connection_);
      return forget_runs(*connection_, project_, retention, now);
    });
  }

  Result<std::optional<TimePoint>> forgotten_before() override {
    return attempt([&] { return unflake::forgotten_before(*connection_, project_); });
  }

  Result<void> visit(const Visitor& visitor) override {
    const auto visited = attempt([&] { return visit_history(*connection_, project_, visitor); });
    return visited ? *visited : visited.error();
  }

 private:
  template <class Work>
  auto write(Work work) -> Result<decltype(work())> {
    if (!writes_) return no_writing();
    return attempt_again(std::move(work));
  }

  Error no_writing() const {
    return internal_error("the history was opened for questions only", connection_->place());
  }

  std::unique_ptr<PgConnection> connection_;
  int64_t project_;
  bool writes_;
  PgWriter writer_;
  PgReader reader_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_postgres_store(const StoreAddress& address, Duration patience) {
  return attempt_again([&]() -> std::unique_ptr<Store> {
    auto connection = std::make_unique<PgConnection>(address.url, patience);
    check_server(*connection, connection->server_version(), connection->server_encoding());
    make_schema(*connection);
    const int64_t project = make_project(*connection, address.project);
    return std::make_unique<PostgresStore>(std::move(connection), project, true);
  });
}

Result<std::unique_ptr<Store>> open_postgres_store_to_read(const StoreAddress& address,
                                                           Duration patience) {
  return attempt_again([&]() -> std::unique_ptr<Store> {
    auto connection = std::make_unique<PgConnection>(address.url, patience);
    check_server(*connection, connection->server_version(), connection->server_encoding());
    require_newest_schema(*connection);
    const int64_t project = find_project(*connection, address.project);
    return std::make_unique<PostgresStore>(std::move(connection), project, false);
  });
}

}  // namespace unflake
