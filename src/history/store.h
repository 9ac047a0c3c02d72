#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/events.h"
#include "util/result.h"

namespace unflake {

using SessionId = int64_t;
using TimePoint = std::chrono::system_clock::time_point;

// A session, a test, a start and an attempt name one run: recording it again changes nothing, so
// that whoever is in doubt may try again.
struct RunRecord {
  TestId test;
  int attempt = 1;
  TimePoint started;
  std::string plan_id;
  OutcomeKind outcome = OutcomeKind::pass;
  Duration duration{};
  std::optional<Failure> failure;
  std::string signature;
  std::string output;  // of a failing run
};

// A store cuts longer outputs in the middle; whoever keeps runs in memory should do it before.
constexpr size_t longest_kept_output = 64 * 1024;

struct SessionRecord {
  TimePoint started;
  Surroundings surroundings;
  std::string command_line;
  std::optional<uint64_t> seed;
  std::string uuid;  // beginning a session again gives the same one; empty: the store makes one up
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
};

struct RecentRun {
  TimePoint started;
  OutcomeKind outcome = OutcomeKind::pass;
  Duration duration{};
  int attempt = 1;
  std::string signature, commit, branch, machine, plan_id;
};

// Every run that was ever made. A run that record() accepted survives the death of the process.
class Store {
 public:
  virtual ~Store() = default;

  virtual Result<SessionId> begin_session(const SessionRecord& session) = 0;
  virtual Result<void> record(SessionId session, const RunRecord& run) = 0;
  virtual Result<void> end_session(SessionId session) = 0;

  virtual Result<void> remember_target(const TargetRecord& target) = 0;
  virtual Result<std::optional<TargetRecord>> find_target(const std::string& name) = 0;

  // Tests whose `target:name` matches the glob, least reliable first. Whoever wants to know whether
  // there are more than `most` asks for one more.
  virtual Result<std::vector<TestSummary>> summarise(const std::string& pattern, size_t most) = 0;
  virtual Result<std::optional<TestSummary>> summarise_test(const TestId& test) = 0;
  virtual Result<std::vector<RecentRun>> recent_runs(const TestId& test, size_t most) = 0;
  virtual Result<std::optional<std::string>> latest_output(const TestId& test,
                                                           const std::string& signature) = 0;
};

// Creates the database and its folder when there is none, and brings an older one up to date.
// `patience`: how long to wait for other processes that write to it.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path,
                                                 Duration patience = std::chrono::seconds(30));

// For questions only, which it answers where nothing can be written, too. Makes no database and
// brings none up to date; recording fails.
Result<std::unique_ptr<Store>> open_sqlite_store_to_read(
    const std::string& path, Duration patience = std::chrono::seconds(30));

}  // namespace unflake
