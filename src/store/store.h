#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/events.h"
#include "store/values.h"
#include "util/result.h"

namespace unflake {

using SessionId = int64_t;

// A session, a test, a start and an attempt name one run: recording it again changes nothing, so
// that whoever is in doubt may try again.
struct RunRecord {
  TestId test;
  int attempt = 1;
  TimePoint started;
  std::string purpose;  // of a trial; see is_plain()
  std::string plan;     // what was done to the test, in words
  OutcomeKind outcome = OutcomeKind::pass;
  Duration duration{};
  std::optional<Failure> failure;
  std::string signature;
  std::string output;  // of a failing run
};

// A plain run shows what a test does by itself. All others are trials, which a search made or a
// look into one test: they are kept apart, without their output, and nothing but recent_trials()
// and visit() tells of them.
inline bool is_plain(const RunRecord& run) {
  return run.purpose.empty() && run.plan.empty();
}

// A run that failed in a way that can be told apart from others.
inline bool has_signature(const RunRecord& run) {
  return is_failing(run.outcome) && !run.signature.empty();
}

// A store cuts longer outputs in the middle; whoever keeps runs in memory should do it before.
constexpr size_t longest_kept_output = 64 * 1024;

struct SessionRecord {
  TimePoint started;
  Surroundings surroundings;
  std::string command_line;
  std::optional<uint64_t> seed;
  std::string uuid;  // beginning a session again gives the same one; empty: the store makes one up
};

// What a run of a test executed: the session tells the commit.
struct FunctionsRecord {
  TestId test;
  TimePoint started;
  std::vector<FunctionId> functions;  // in order
};

// How a target is found again when only its name is given.
struct TargetRecord {
  std::string name;
  Framework framework = Framework::command;
  std::string path;  // relative to the project's root when inside it
  std::vector<std::string> argv;
};

struct DurationSummary {
  int64_t runs = 0;
  Duration min{}, median{}, p95{}, max{}, mean{};
  bool approximate = false;  // quantiles come from a histogram
};

struct SignatureSummary {
  std::string signature;
  Failure failure;
  OutcomeKind outcome = OutcomeKind::fail;
  int64_t runs = 0;
  TimePoint first, last;
  std::string first_commit, last_commit;
};

struct TestSummary {
  TestId test;
  int64_t passes = 0, failures = 0, skips = 0;
  TimePoint first, last;
  DurationSummary pass_durations, fail_durations;
  std::vector<SignatureSummary> signatures;  // the most frequent ones, most frequent first
  int64_t signature_count = 0;               // of all that were seen

  int64_t runs() const { return passes + failures + skips; }
};

struct RecentRun {
  TimePoint started;
  OutcomeKind outcome = OutcomeKind::pass;
  Duration duration{};
  int attempt = 1;
  std::string signature, commit, branch, machine;
  std::string purpose = "", plan = "";  // of a trial
};

// Which sessions are asked about. What is empty is left open.
struct SessionQuestion {
  std::string command;  // how the command line begins
  std::string target = "";
  std::string machine = "";
  std::string build = "";
};

// What failed in the last session of a target. Of tests that a session did not come to, because it
// was stopped, the session before it tells.
struct LastFailures {
  TimePoint started;
  std::string command_line;
  bool finished = true;
  std::string target;
  std::vector<TestId> failed;
};

// Where a history is, and whose tests it is asked about.
struct StoreAddress {
  std::string url;           // a file, or postgres://user@host/database
  std::string project = "";  // several may share one history; they do not see each other's tests
};

bool is_postgres(const StoreAddress& address);

// The url as it may be shown: without a password.
std::string to_string(const StoreAddress& address);

// Flaky failures: what they do to builds, and what people and commands did about them.
class LifecycleStore {
 public:
  virtual ~LifecycleStore() = default;

  // Of the sessions that began in the window, the ones that hit most builds first. What was
  // recorded one by one is in it from the end of a session on.
  virtual Result<std::vector<FlakyFailure>> flaky_failures(const Window& window, size_t most) = 0;
  // Builds of sessions that began in the window and in which suppress() was told of this failure,
  // whatever else failed in them, and whether or not it is flaky.
  virtual Result<int64_t> count_suppressed_builds(const TestId& test, const std::string& signature,
                                                  const Window& window) = 0;
  // Of all projects, by name.
  virtual Result<std::vector<Prevalence>> prevalence(const Window& window) = 0;

  // Tells the same step only once.
  virtual Result<void> note(const LifecycleStep& step) = 0;
  virtual Result<std::vector<LifecycleStep>> steps(const Window& window) = 0;
  virtual Result<std::vector<CauseRecord>> causes() = 0;
  // Inserts it, or replaces the one with its id. Gives the id.
  virtual Result<int64_t> save_cause(const CauseRecord& cause) = 0;
};

// Every run that was ever made. A run that record() accepted survives the death of the process.
class Store {
 public:
  virtual ~Store() = default;

  virtual Result<SessionId> begin_session(const SessionRecord& session) = 0;
  // When the session began, as it was recorded first; none: it is not known.
  virtual Result<std::optional<TimePoint>> find_session(const std::string& uuid) = 0;
  virtual Result<void> record(SessionId session, const RunRecord& run) = 0;
  // All or nothing, and much faster than one by one.
  virtual Result<void> record_all(SessionId session, std::span<const RunRecord> runs) = 0;
  // All or nothing; the same trace again changes nothing.
  virtual Result<void> record_functions(SessionId session,
                                        std::span<const FunctionsRecord> traces) = 0;
  // This failure of this test did not fail the session's build.
  virtual Result<void> suppress(SessionId session, const TestId& test,
                                const std::string& signature) = 0;
  virtual Result<void> end_session(SessionId session) = 0;
  // Instead of its end: it did not come to all of its tests.
  virtual Result<void> stop_session(SessionId session) = 0;

  virtual Result<void> remember_target(const TargetRecord& target) = 0;
  virtual Result<std::optional<TargetRecord>> find_target(const std::string& name) = 0;

  // Tests whose `target:name` matches the glob, least reliable first. Whoever wants to know whether
  // there are more than `most` asks for one more.
  virtual Result<std::vector<TestSummary>> summarise(const std::string& pattern, size_t most) = 0;
  virtual Result<std::optional<TestSummary>> summarise_test(const TestId& test) = 0;
  // Those of the tests that are known, in their order; faster than one by one.
  virtual Result<std::vector<TestSummary>> summarise_tests(std::span<const TestId> tests);
  virtual Result<std::vector<RecentRun>> recent_runs(const TestId& test, size_t most) = 0;
  // Newest first as well; of one purpose, or of all when it is empty.
  virtual Result<std::vector<RecentRun>> recent_trials(const TestId& test,
                                                       const std::string& purpose, size_t most) = 0;
  // The newest trace of each test whose `target:name` matches the glob, by name.
  virtual Result<FunctionTraces> latest_functions(const std::string& pattern) = 0;
  // Tests whose `target:name` matches the glob, by name, also those of which there are only trials.
  virtual Result<std::vector<TestId>> find_tests(const std::string& pattern, size_t most) = 0;
  virtual Result<std::optional<std::string>> latest_output(const TestId& test,
                                                           const std::string& signature) = 0;
  virtual Result<RunCounts> count_runs(const TestId& test, const std::string& signature,
                                       const Window& window) = 0;
  // None: no such session has a run.
  virtual Result<std::optional<LastFailures>> last_failures(const SessionQuestion& question) = 0;

  virtual LifecycleStore& lifecycle() = 0;

  virtual Result<RetentionCount> forget(const Retention& retention, TimePoint now) = 0;

  // Every session and its runs that are still kept, oldest session first, each run after its
  // session. Stops at the first error that a visitor gives.
  struct Visitor {
    std::function<Result<void>(const SessionRecord&)> session;
    std::function<Result<void>(const RunRecord&)> run;
    // What suppress() was told of the session, after its runs. May be left out.
    std::function<Result<void>(const TestId&, const std::string& signature)> suppression = {};
  };
  virtual Result<void> visit(const Visitor& visitor) = 0;

  // Runs that began before it may have been forgotten, passing ones or failing ones: a rate over
  // them would be wrong. None: nothing ever was.
  virtual Result<std::optional<TimePoint>> forgotten_before() = 0;
};

// Creates the database when there is none, and brings an older one up to date. `patience`: how long
// to wait for other processes that write to it, or for a server.
Result<std::unique_ptr<Store>> open_store(const StoreAddress& address,
                                          Duration patience = std::chrono::seconds(30));

// For questions only, which it answers where nothing can be written, too. Makes no database and
// brings none up to date; recording fails.
Result<std::unique_ptr<Store>> open_store_to_read(const StoreAddress& address,
                                                  Duration patience = std::chrono::seconds(30));

// The files of schema/, compiled in. The n-th one brings a database from version n-1 to n; once
// released, none of them changes any more.
std::span<const std::string_view> migration_scripts();

enum class Dialect { sqlite, postgres };

size_t newest_schema();

// The script that leads to a version from the one before it. The files are written for SQLite.
// Where the databases must differ, a line `-- only sqlite` or `-- only postgres` begins what is for
// one of them, up to the next such line or to `-- both`.
std::string migration(size_t version, Dialect dialect);

// What migration() does to a file's text.
std::string in_dialect(std::string_view script, Dialect dialect);

}  // namespace unflake
