#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/test.h"
#include "store/sqlite/database.h"
#include "store/store.h"
#include "store/summary.h"
#include "store/values.h"

namespace unflake {

struct NameHash {
  size_t operator()(const std::string& name) const { return std::hash<std::string>()(name); }
  size_t operator()(const TestId& test) const {
    return (*this)(test.name) ^ (*this)(test.target) * 31;
  }
};

// The rows of names that were seen. Begins anew when it holds much: whoever takes in millions of
// tests must not keep all their names in memory.
template <class Name>
class RowCache {
 public:
  const int64_t* find(const Name& name) const {
    const auto found = rows_.find(name);
    return found != rows_.end() ? &found->second : nullptr;
  }

  int64_t add(const Name& name, int64_t row) {
    constexpr size_t most_bytes = 64 * 1024 * 1024;
    const size_t size = bytes_of(name) + sizeof(Name) + 64;
    if (bytes_ + size > most_bytes) clear();
    bytes_ += size;
    rows_[name] = row;
    return row;
  }

  void clear() {
    rows_.clear();
    bytes_ = 0;
  }

 private:
  static size_t bytes_of(const std::string& name) { return name.size(); }
  static size_t bytes_of(const TestId& test) { return test.target.size() + test.name.size(); }

  std::unordered_map<Name, int64_t, NameHash> rows_;
  size_t bytes_ = 0;
};

RunRow read_run(const Query& query);  // of UNFLAKE_RUN_COLUMNS

// What the tables and the runs that are not in them yet say together; without the histograms of
// the tables.
Totals read_totals(Database& database);
Totals read_totals(Database& database, int64_t test);

// Adds them to what the tables `totals` and `histograms` hold.
class TotalsTables {
 public:
  explicit TotalsTables(Database& database);
  void add(const Totals& totals);

 private:
  Statement add_total_;
  Statement add_bucket_;
};

// The runs of one test in one session that the sums over sessions have: those in `staged_runs`, and
// those in `runs`, which are found by the stretch of time of `placed_sessions`.
class SessionRuns {
 public:
  explicit SessionRuns(Database& database);

  bool has_placed(int64_t session);
  bool holds(const RunRow& run);  // in `runs`
  int64_t passes(int64_t session, int64_t test);
  bool passed(int64_t session, int64_t test);

  // By start, then by attempt.
  std::optional<RunRow> before(const RunRow& run);
  std::optional<RunRow> after(const RunRow& run);

 private:
  std::optional<RunRow> nearest(Statement& staged, Statement& placed, const RunRow& run,
                                bool latest);

  Statement has_placed_, holds_;
  Statement passes_, passed_;
  Statement staged_before_, placed_before_, staged_after_, placed_after_;
};

// Keeps the sums over a session's runs, `session_totals` and `incidents`, exact whatever order runs
// come in. Every run goes through add() once, when it comes into `staged_runs`.
class SessionSums {
 public:
  SessionSums(Database& database, SessionRuns& stored);

  // Runs of one session, in the order of their key, which are in `staged_runs` already.
  void add(std::span<const RunRow> runs);

 private:
  struct Incident {
    int64_t outcome = 0, failures = 0, first_us = 0, last_us = 0, wasted_us = 0;
  };
  using Incidents = std::map<int64_t, Incident>;  // by signature

  void add_totals(std::span<const RunRow> runs);
  std::set<int64_t> failed_tests(int64_t session);
  void add_test(std::span<const RunRow> runs, bool failed_before);
  void add_waste(std::span<const RunRow> runs, Incidents& incidents);
  int64_t passes_of_failed(int64_t session, int64_t test);

  SessionRuns& stored_;
  Statement add_total_, failed_tests_, add_passes_, passes_, add_incident_;
};

// A row of `incidents` whose failure is flaky, with what its session says.
struct FlakyIncident {
  int64_t session = 0, test = 0, signature = 0, outcome = 0, failures = 0;
  int64_t first_us = 0, last_us = 0, wasted_us = 0;
  int64_t build = 0;  // a number for the build's name
  bool in_build = true;
  bool suppressed = false;
};

// Those of the sessions of a project that began in the window.
void for_each_flaky_incident(Database& database, int64_t project, const Window& window,
                             const std::function<void(const FlakyIncident&)>& take);

// Numbers names in the order in which they are seen.
class Numbering {
 public:
  int64_t of(std::string name) {
    return numbers_.try_emplace(std::move(name), static_cast<int64_t>(numbers_.size()))
        .first->second;
  }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

// A failure is flaky when the test passed on the same code. That it did so in the failure's own
// session is known with the run; this looks into the other sessions of the build and, when the work
// tree was clean, of the commit.
class Flakiness {
 public:
  explicit Flakiness(Database& database);

  // In both directions: passes of this session tell about failures of the others, too.
  void settle(int64_t session);

 private:
  std::vector<int64_t> sessions_with_same_code(int64_t session);
  std::vector<int64_t> unsettled_tests(int64_t session);
  void settle_own_failures(int64_t session, const std::vector<int64_t>& others);
  void settle_failures_of(int64_t other, int64_t session);

  Database& database_;
  SessionRuns runs_;
  Statement same_code_, unsettled_, settle_;
};

// Answers what flaky tests do to builds. A session is in a window when it began in it.

std::vector<FlakyFailure> flaky_failures(Database& database, int64_t project, const Window& window,
                                         size_t most);

int64_t count_suppressed_builds(Database& database, int64_t project, const TestId& test,
                                const std::string& signature, const Window& window);

std::vector<Prevalence> prevalence(Database& database, const Window& window);

// The runs that the sums over tests do not have: `staged_runs` and `fresh_runs`.

void for_each_unplaced(Database& database, const std::function<void(const RunRow&)>& take);

// `staged_runs` is ordered by session, so this looks into each session that has some there. They
// are few: see Placement.
void for_each_unplaced(Database& database, int64_t test,
                       const std::function<void(const RunRow&)>& take);

// Brings runs into `staged_runs` and into the sums over sessions.
class Staging {
 public:
  Staging(Database& database, int64_t project);

  // Inside a transaction: the runs of one session that are new, in the order of their key.
  std::vector<RunRow> stage(std::vector<RunRow> runs);

  // Everything that waits in `fresh_runs`, in short transactions. Says whose runs it was.
  std::set<int64_t> stage_fresh();

 private:
  int64_t stage_some_fresh(std::set<int64_t>& sessions);
  std::vector<RunRow> insert_new(std::vector<RunRow> runs);

  Database& database_;
  int64_t project_;
  SessionRuns stored_;
  SessionSums sums_;
  Statement insert_, is_fresh_, any_fresh_, horizon_;
  Statement some_fresh_, remove_fresh_;
};

// Moves runs from `staged_runs` to where they stay, among the other runs of their test, and adds
// them to the sums over tests. A move touches a page for each test that has a run in it, so there
// are many runs in each; what waits is added up by whoever asks.
class Placement {
 public:
  explicit Placement(Database& database);

  // Moves runs when enough of them wait. The counts are of what was staged since the last call.
  void place_when_due(int64_t runs, int64_t sessions);
  void place_all();

 private:
  bool is_due();
  int64_t place(int64_t most);
  void add_to_runs(const std::vector<RunRow>& runs);
  void note_sessions(const std::vector<RunRow>& runs);

  Database& database_;
  int64_t runs_since_look_, sessions_since_look_;
};

// Puts trials into the database, each after the plan that it shares with others.
class TrialsTable {
 public:
  explicit TrialsTable(Database& database);

  // Inside a transaction, and never remembered beyond it: others forget plans without trials.
  int64_t plan_row(const std::string& purpose, const std::string& plan);
  void insert(const RunRow& trial);

 private:
  Database& database_;
  Statement insert_plan_, find_plan_, insert_;
};

// Newest first.
std::vector<RecentRun> recent_trials(Database& database, int64_t test, const std::string& purpose,
                                     size_t most);

// All trials of a project in the order in which sessions are visited.
class TrialStream {
 public:
  TrialStream(Database& database, int64_t project);

  // Of the session: none when its trials are over.
  std::optional<RunRow> next_of(int64_t session);
  // What the row's plan stands for.
  void describe(const RunRow& row, RunRecord& trial);

 private:
  Statement all_, plan_;
  Query query_;
  std::optional<RunRow> next_;
};

// Deletes plans that no trial is of.
void forget_unused_plans(Database& database);

// Puts what one run executed into the database, inside a transaction. Rows of names and of sets are
// never remembered beyond it: others forget those that nothing uses.
class ExecutedTable {
 public:
  ExecutedTable(Database& database, int64_t project);

  void insert(SessionId session, int64_t test, const FunctionsRecord& trace);

 private:
  int64_t function_row(const FunctionId& function);
  int64_t set_row(const std::string& members);

  Database& database_;
  int64_t project_;
  Statement find_function_, insert_function_, find_set_, insert_set_, insert_trace_;
};

FunctionTraces latest_functions(Database& database, int64_t project, const std::string& pattern);

// But for the newest one of each test. Then sets that no trace has, and names that no set has.
int64_t forget_function_traces(Database& database, int64_t project, int64_t before_us);

// Turns the totals of tests into summaries, and looks up what they do not hold: quantiles,
// failures, commits.
class Summariser {
 public:
  // Tests with up to `exact_up_to` runs get exact quantiles, which takes reading all of the runs.
  Summariser(Database& database, const Totals& totals, int64_t exact_up_to);

  TestSummary summarise(const TestId& id, int64_t test);

 private:
  void add_exact_quantiles(int64_t test, TestSummary& summary);
  void add_approximate_quantiles(int64_t test, TestSummary& summary);
  void add_signatures(int64_t test, TestSummary& summary);
  SignatureSummary describe(const TotalKey& key, const Total& total);
  std::string commit_of(int64_t session);

  const Totals& totals_;
  int64_t exact_up_to_;
  Database& database_;
  Statement runs_;
  Statement histograms_;
  Statement signature_;
  Statement commit_;
};

// Answers questions about a project's tests. Each answer comes from one state of the database,
// whatever others write meanwhile: the totals plus the runs that are not in them yet.
class Reader {
 public:
  Reader(Database& database, int64_t project) : database_(database), project_(project) {}

  std::optional<TimePoint> find_session(const std::string& uuid);
  std::vector<TestSummary> summarise(const std::string& pattern, size_t most);
  std::optional<TestSummary> summarise_test(const TestId& test);
  std::vector<TestSummary> summarise_tests(std::span<const TestId> tests);
  std::vector<RecentRun> recent_runs(const TestId& test, size_t most);
  std::vector<RecentRun> recent_trials(const TestId& test, const std::string& purpose, size_t most);
  std::vector<TestId> find_tests(const std::string& pattern, size_t most);
  std::optional<std::string> latest_output(const TestId& test, const std::string& signature);
  RunCounts count_runs(const TestId& test, const std::string& signature, const Window& window);
  std::optional<LastFailures> last_failures(const SessionQuestion& question);

 private:
  std::optional<int64_t> find_test(const TestId& test);

  Database& database_;
  int64_t project_;
};

// See Store::visit.
Result<void> visit_history(Database& database, int64_t project, const Store::Visitor& visitor);

}  // namespace unflake
