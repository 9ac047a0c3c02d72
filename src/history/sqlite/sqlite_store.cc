#include <exception>
#include <utility>

#include "history/sqlite/database_file.h"
#include "history/sqlite/failure.h"
#include "history/sqlite/reader.h"
#include "history/sqlite/sqlite_store.h"
#include "history/sqlite/totals.h"
#include "history/sqlite/writer.h"
#include "history/store.h"

namespace unflake {
namespace {

// One transaction moves so many runs on, which takes some ten milliseconds; others wait for it.
constexpr int64_t fold_batch = 8192;

// So many runs may pile up before they are moved on while a session runs. The more there are, the
// more of them share a page; the fewer there are, the less a query has to add up.
constexpr int64_t most_unfolded = 65'536;

// The door of this folder: no exception leaves it.
template <class Work>
auto attempt(Work work) -> Result<decltype(work())> {
  try {
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      return {};
    } else {
      return work();
    }
  } catch (const DatabaseFailure& failure) {
    return failure.error;
  } catch (const std::exception& exception) {
    return internal_error(std::string("the history failed: ") + exception.what());
  }
}

std::string join_argv(const std::vector<std::string>& argv) {
  std::string joined;
  for (const std::string& word : argv) joined.append(word.c_str()).push_back('\0');
  return joined;
}

std::vector<std::string> split_argv(std::string_view joined) {
  std::vector<std::string> argv;
  for (size_t end = 0; (end = joined.find('\0')) != std::string_view::npos;) {
    argv.emplace_back(joined.substr(0, end));
    joined.remove_prefix(end + 1);
  }
  return argv;
}

class SqliteStore : public Store {
 public:
  explicit SqliteStore(std::unique_ptr<Database> database)
      : database_(std::move(database)), writer_(*database_), reader_(*database_) {}

  Result<SessionId> begin_session(const SessionRecord& session) override {
    return attempt([&] { return writer_.begin_session(session); });
  }

  Result<void> record(SessionId session, const RunRecord& run) override {
    const auto recorded = attempt([&] { writer_.record(session, run); });
    if (recorded && ++unfolded_ >= most_unfolded) fold_one_batch();
    return recorded;
  }

  Result<void> record_all(SessionId, std::span<const RunRecord>) override { return stub(); }
  Result<void> suppress(SessionId, const TestId&, const std::string&) override { return stub(); }
  Result<RunCounts> count_runs(const TestId&, const std::string&, const Window&) override {
    return stub();
  }
  Result<std::vector<FlakyFailure>> flaky_failures(const Window&, size_t) override {
    return stub();
  }
  Result<std::vector<Prevalence>> prevalence(const Window&) override { return stub(); }
  Result<void> note(const LifecycleEvent&) override { return stub(); }
  Result<std::vector<LifecycleEvent>> lifecycle(const Window&) override { return stub(); }
  Result<std::vector<CauseRecord>> causes() override { return stub(); }
  Result<int64_t> save_cause(const CauseRecord&) override { return stub(); }
  Result<RetentionCount> forget(const Retention&, TimePoint) override { return stub(); }
  Result<void> visit(const Visitor&) override { return stub(); }
  static Error stub() { return internal_error("not there yet"); }

  Result<void> end_session(SessionId session) override {
    return attempt([&] {
      writer_.end_session(session);
      while (fold_fresh_runs(*database_, fold_batch) == fold_batch) {
      }
      unfolded_ = 0;
    });
  }

  Result<void> remember_target(const TargetRecord& target) override {
    return attempt([&] {
      Statement remember(*database_, "REPLACE INTO targets VALUES (0, ?, ?, ?, ?)");
      remember.run(target.name, to_string(target.framework), target.path,
                   Blob{join_argv(target.argv)});
    });
  }

  Result<std::optional<TargetRecord>> find_target(const std::string& name) override {
    return attempt([&]() -> std::optional<TargetRecord> {
      Statement find(*database_,
                     "SELECT framework, path, argv FROM targets WHERE project = 0 AND name = ?");
      Query query(find, name);
      const auto framework = query.next() ? framework_from(query.text(0)) : std::nullopt;
      if (!framework) return std::nullopt;
      return TargetRecord{name, *framework, query.text(1), split_argv(query.text(2))};
    });
  }

  Result<std::vector<TestSummary>> summarise(const std::string& pattern, size_t most) override {
    return attempt([&] { return reader_.summarise(pattern, most); });
  }

  Result<std::optional<TestSummary>> summarise_test(const TestId& test) override {
    return attempt([&] { return reader_.summarise_test(test); });
  }

  Result<std::vector<RecentRun>> recent_runs(const TestId& test, size_t most) override {
    return attempt([&] { return reader_.recent_runs(test, most); });
  }

  Result<std::optional<std::string>> latest_output(const TestId& test,
                                                   const std::string& signature) override {
    return attempt([&] { return reader_.latest_output(test, signature); });
  }

 private:
  // The runs are safe already, so a fold that fails is left to a later one. The next records go on
  // with it, batch by batch: none of them holds up the session for long.
  void fold_one_batch() {
    const auto folded = attempt([&] { return fold_fresh_runs(*database_, fold_batch); });
    if (!folded || *folded < fold_batch) unfolded_ = 0;
  }

  std::unique_ptr<Database> database_;
  Writer writer_;
  Reader reader_;
  int64_t unfolded_ = 0;
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const StoreAddress& address, Duration patience) {
  return attempt([&]() -> std::unique_ptr<Store> {
    return std::make_unique<SqliteStore>(open_history(address.url, patience));
  });
}

Result<std::unique_ptr<Store>> open_sqlite_store_to_read(const StoreAddress& address,
                                                         Duration patience) {
  return attempt([&]() -> std::unique_ptr<Store> {
    return std::make_unique<SqliteStore>(open_history_to_read(address.url, patience));
  });
}

}  // namespace unflake
