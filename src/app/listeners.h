#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/options.h"
#include "app/project.h"
#include "model/events.h"
#include "model/repair.h"
#include "report/consumers.h"
#include "report/terminal.h"
#include "run/executor.h"
#include "run/interrupts.h"
#include "search/session/session.h"
#include "store/recorder.h"
#include "symbols/project_code.h"

namespace unflake {

struct RunCommand {
  TargetOptions target;
  StoreOptions history;
  ConfigOptions configuration;
  std::optional<int> repeat;
  std::optional<int> retries;
  std::optional<size_t> jobs;
  std::optional<Duration> duration, timeout, grace, slow_after;
  std::optional<uint64_t> seed;
  std::optional<std::string> flaky;
  std::optional<bool> fork_server;
  std::optional<bool> crash_places;
  std::string json_file, junit, colour = "auto";
  bool until_fail = false, fail_fast = false, shuffle = false;
  bool json = false, quiet = false, verbose = false, full = false, core_dumps = false;
  size_t max_output_kib = 1024;
  size_t slowest = 0;
  bool rerun_failed = false;

  bool ci = false, quarantine_new = false;
  std::string changed_since;
  std::vector<std::string> enforced;  // files of `unflake repair`
  std::optional<int> changed_runs;
  QuarantineOptions quarantine;
};

void add_options(CommandLine& line, RunCommand& run);

SessionPolicy policy_of(const RunCommand& run, const Config& config, bool live);

// How often a new or changed test runs.
int changed_runs_of(const RunCommand& run, const Config& config);

// The command line wins over an override, an override over the suite, the suite over the profile.
std::vector<PlannedTest> plan_tests(const SelectedTests& tests, const RunCommand& run,
                                    const Config& config);

// `choice` is auto, always or never.
bool wants_colour(const std::string& choice, int fd);

// Whether a display that is rewritten in place makes sense there.
bool can_be_live(int fd);

// Standard output belongs to the JSON lines when they are asked for.
int terminal_of(const RunCommand& run);

// "unflake run ./server_test -n 3", as it can be given again.
std::string command_line_of(const std::string& command, const Words& words);

class OneTest;
struct OneTestOptions;

// Records the trials of a command that looks into tests. They begin a session with the first of
// them: a command that made no run leaves nothing in the history.
class TrialHistory : public Consumer {
 public:
  using Tell = HistoryRecorder::Tell;

  // Without it, or with --no-history, nothing is recorded. Must outlive the test, whose fixtures
  // end with it.
  void open(const StoreOptions& options, OneTest& one, std::string command_line, Tell tell);
  // The same for a command that listens to nothing else: notes go to standard error.
  void open(const OneTestOptions& options, OneTest& one, std::string command_line);
  ~TrialHistory() override { close(); }
  void on(const Event& event) override;

 private:
  // What still waits is written, and notes about that may come back here.
  void close() { recorder_.reset(); }
  Result<Store*> open_store(const StoreAddress& address, const Project& project);

  std::unique_ptr<Store> store_;
  std::unique_ptr<HistoryRecorder> recorder_;
};

// Everything that listens to a session.
class Listeners {
 public:
  // Without a way to open a store, nothing is recorded.
  Result<void> open(const RunCommand& run, FlakyResult flaky, HistoryRecorder::OpenStore store,
                    const Executor& executor, const Interrupts& interrupts);

  EventStream& stream() { return stream_; }

  // What could not be written although the session went well.
  std::optional<Error> complaint() const;

 private:
  Result<void> open_json(const RunCommand& run, const Interrupts& interrupts);
  Result<void> open_junit(const RunCommand& run, FlakyResult flaky);
  void add_json(int fd, const Interrupts& interrupts);
  void open_github();

  EventStream stream_;
  std::unique_ptr<FdSink> terminal_sink_;
  std::unique_ptr<TerminalReport> terminal_;
  std::unique_ptr<HistoryRecorder> recorder_;
  UniqueFd json_file_;
  std::vector<std::unique_ptr<FdSink>> json_sinks_;
  std::vector<std::unique_ptr<JsonLines>> json_;
  std::unique_ptr<JunitReport> junit_;
  std::unique_ptr<GithubAnnotations> annotations_;
  std::unique_ptr<GithubSummary> summary_;
};

// Orders that are kept while tests run, without touching any source: the files of `unflake repair`.
// Such runs are trials, and whoever sees their results is told so.
class Enforcement : public Consumer {
 public:
  // Gives the plan of a fix to the test that it is for, with its places in the program as it is
  // now. An error when the test is not among those that are to run, or a place is gone.
  Result<void> add(const Project& project, const std::string& file, const ProjectCodeRules& rules,
                   std::vector<PlannedTest>& tests, Executor& executor);

  void on(const Event& event) override;

  // What to say before the session, and how often somebody had to wait after it.
  const std::vector<Note>& before() const { return before_; }
  std::vector<Note> after() const;

 private:
  struct Enforced {
    TestId test;
    std::string file;
    size_t runs = 0, waiting_runs = 0;
    uint64_t waits = 0, let_go = 0, impossible = 0;
    Duration waited{};
  };
  void count(Enforced& enforced, const RunEnded& run) const;

  std::vector<Enforced> all_;
  std::vector<Note> before_;
};

}  // namespace unflake
