#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/executed.h"
#include "model/outcome.h"
#include "model/test.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

struct Window {
  TimePoint from = TimePoint::min();
  TimePoint until = TimePoint::max();
};

// One failure of one test, in those builds of a window in which the test also passed on the same
// code. A build is all sessions that have its name; a session without one is a build of its own,
// and one whose name says that it is local is none.
struct FlakyFailure {
  TestId test;
  std::string signature;
  Failure failure;
  OutcomeKind outcome = OutcomeKind::fail;
  int64_t runs = 0;               // that failed so
  int64_t builds = 0;             // in which that happened
  int64_t suppressed_builds = 0;  // of these, the ones that quarantine kept from failing
  Duration wasted{};              // in those failing runs and in the runs that tried again
  TimePoint first, last;
  std::string first_commit, last_commit;
};

// A row of seed figures: what flaky tests did to a project's builds in a window.
struct Prevalence {
  std::string project;
  int64_t tests = 0;
  int64_t builds = 0;
  int64_t failed_builds = 0;  // with a test that failed, flaky or not
  int64_t runs = 0;
  Duration median_build{};
  int64_t flaky_tests = 0;
  int64_t flaky_failures = 0;  // tests that failed and passed in one build, over all builds
  int64_t flaky_builds = 0;    // with at least one of these
  int64_t suppressed = 0;      // flaky failures that quarantine kept from failing a build
};

// How often a test passed and failed in a window.
struct RunCounts {
  int64_t passes = 0;
  int64_t failures = 0;
  int64_t with_signature = 0;  // failures that showed the one that was asked for
  std::optional<TimePoint> last_failure;
  bool cut = false;  // there were too many runs: only the newest were counted
};

// What people and commands did about a flaky test, or found out about it.
struct LifecycleStep {
  enum class Kind {
    quarantined,
    lifted,
    expired,
    report_opened,
    report_closed,
    report_reopened,
    detected,    // `reason` says how it was found to be flaky, `url` where its repro is
    introduced,  // by `commit`, as a search over builds has shown
  };
  Kind kind = Kind::quarantined;
  TestId test;
  std::string signature;
  TimePoint at;
  std::string commit;  // of a fix, when one is claimed
  std::string reason;
  std::string owner;
  std::string url;
};

// Tells what was found out about a test; nobody has done anything about it.
inline bool is_finding(const LifecycleStep& step) {
  return step.kind == LifecycleStep::Kind::detected || step.kind == LifecycleStep::Kind::introduced;
}

std::string_view to_string(LifecycleStep::Kind kind);

// Failures, of one test or of several, that have one cause: what one report is about.
struct CauseRecord {
  enum class State { open, closed };
  int64_t id = 0;  // 0: not saved yet
  std::string title;
  std::vector<std::string> signatures;
  State state = State::open;
  TimePoint opened;
  std::optional<TimePoint> closed;
  int reopened = 0;
  std::string category;  // of the explanation, when the failure was reproduced; empty: unknown
  std::string url;       // of the issue that was opened for it
};

// What is kept for how long; none: for ever. The sums over all runs stay in any case. Trials are in
// no sum, and go first; with them go traces of functions, but for the newest one of each test.
struct Retention {
  std::optional<Duration> trials = {};
  std::optional<int> most_trials = {};  // of each test, the newest
  std::optional<Duration> passing_runs;
  std::optional<Duration> failing_runs;
  std::optional<Duration> outputs;
};

struct RetentionCount {
  int64_t trials = 0;
  int64_t runs = 0;
  int64_t outputs = 0;
  int64_t traces = 0;  // of the functions that a test executed
};

// The forms in which a history keeps what it is given.

int64_t to_microseconds(TimePoint time);

std::optional<int64_t> to_microseconds(const std::optional<TimePoint>& time);

// A stored number may be anything; one that no time_point can hold becomes the nearest that it can.
TimePoint to_time(int64_t microseconds);

// A time that makes no sense becomes none; one that is not known stays so.
int64_t recorded_us(Duration duration);

// Each word ends in a NUL byte, the only byte that no word can hold.
std::string join_argv(const std::vector<std::string>& argv);
std::vector<std::string> split_argv(std::string_view joined);

// Runs from before it are not kept; the smallest number when all are.
int64_t cut_off(const std::optional<Duration>& kept, TimePoint now);

// Which trials of a test are not kept: those from before, and those that have so many newer ones.
struct TrialBounds {
  int64_t before_us = INT64_MIN, newer = INT64_MAX;
};
TrialBounds trial_bounds(const Retention& retention, TimePoint now);

// A name that no other session has, on any machine.
std::string make_session_uuid();

// The name of what is not a build: a session that somebody made beside CI. Its runs tell of tests,
// and nothing of what flaky tests do to builds.
inline constexpr std::string_view local_build = "local:";

// The numbers that a history stores for these enumerations. They belong to the file format: an
// enumeration may be reordered or grow, its numbers stay. An unknown number reads as the most
// general one, so that a damaged row is seen and breaks nothing.
int64_t code_of(OutcomeKind kind);
OutcomeKind outcome_from_code(int64_t code);

int64_t code_of(FailureKind kind);
FailureKind failure_from_code(int64_t code);

int64_t code_of(LifecycleStep::Kind kind);
LifecycleStep::Kind lifecycle_from_code(int64_t code);

int64_t code_of(CauseRecord::State state);
CauseRecord::State cause_state_from_code(int64_t code);

int64_t code_of(FunctionKind kind);
FunctionKind function_kind_from_code(int64_t code);

// Thrown inside a store's folder only: its methods turn it into their Result.
struct StoreFailure : std::exception {
  explicit StoreFailure(Error error) : error(std::move(error)) {}
  const char* what() const noexcept override { return error.what.c_str(); }
  Error error;
};

// The door of such a folder: no exception leaves it.
template <class Work>
auto attempt(Work work) -> Result<decltype(work())> {
  try {
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      return {};
    } else {
      return work();
    }
  } catch (const StoreFailure& failure) {
    return failure.error;
  } catch (const std::exception& exception) {
    return internal_error(std::string("the history failed: ") + exception.what());
  }
}

// A run as the tables hold it. The first four columns name it: what is recorded twice is there
// once. The plan is that of a trial, and 0 for all others.
struct RunRow {
  int64_t test = 0, started_us = 0, session = 0, attempt = 0;
  int64_t duration_us = 0, outcome = 0, signature = 0, plan = 0;

  auto by_session() const { return std::tie(session, test, started_us, attempt); }
  auto by_test() const { return std::tie(test, started_us, session, attempt); }

  bool has_duration() const { return duration_us >= 0; }

  // What an injected delay brings about says nothing of what a test does by itself.
  bool failed_by_itself() const { return plan == 0 && is_failing(outcome_from_code(outcome)); }
  bool passed_by_itself() const {
    return plan == 0 && outcome_from_code(outcome) == OutcomeKind::pass;
  }
};

#define UNFLAKE_RUN_COLUMNS \
  "test, started_us, session, attempt, duration_us, outcome, signature, plan"

// What both kinds of databases do with the functions that a test executed.

// Of names and files: a mangled template may have as many letters as its author's patience allows.
constexpr size_t longest_function_name = 4096;

// A set of rows, ascending, in few bytes: the distance of each from the one before it. Reading
// stops at what cannot have been written so.
std::string packed_rows(std::span<const int64_t> ascending);
std::vector<int64_t> unpacked_rows(std::string_view packed);

int64_t hash_of_members(std::string_view packed);

// Puts traces together from their rows. Names may come after the sets that they are in.
class TraceReader {
 public:
  void add(TestId test, TimePoint at, std::string commit, std::string_view members);
  // Ignored when no set has it.
  void name(int64_t row, FunctionId function);
  FunctionTraces take();

 private:
  FunctionTraces traces_;
  std::vector<std::vector<int64_t>> rows_;  // of each test
  std::map<int64_t, uint32_t> numbers_;     // of rows, from 1; 0: has no name
};

}  // namespace unflake
