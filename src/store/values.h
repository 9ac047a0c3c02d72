#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/outcome.h"
#include "store/lifecycle_step.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

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

// The name of what is no build: a session that somebody made beside CI. Its runs tell of tests, and
// nothing of what flaky tests do to builds.
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

}  // namespace unflake
