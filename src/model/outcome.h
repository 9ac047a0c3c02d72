#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/process_result.h"
#include "model/test.h"

namespace unflake {

enum class OutcomeKind { pass, fail, crash, timeout, skipped };

std::string_view to_string(OutcomeKind kind);

inline bool is_failing(OutcomeKind kind) {
  return kind != OutcomeKind::pass && kind != OutcomeKind::skipped;
}

enum class FailureKind {
  assertion,        // a framework's check, or assert()
  exception,        // uncaught, or caught by the framework around the test
  signal,           // died of a signal with no better explanation
  exit_status,      // nothing but the exit status tells
  output_pattern,   // CTest's PASS/FAIL_REGULAR_EXPRESSION
  unexpected_pass,  // CTest's WILL_FAIL, a framework's "should fail"
  timeout,
  address_sanitizer,
  thread_sanitizer,
  undefined_behaviour_sanitizer,
  memory_sanitizer,
  leak_sanitizer,
  valgrind,
  not_started,  // the process could not be started, or the test is not in the binary
};

std::string_view to_string(FailureKind kind);
bool is_sanitizer(FailureKind kind);

// What a failing run showed. Every field but `kind` may be empty.
struct Failure {
  FailureKind kind = FailureKind::exit_status;
  std::string file;
  int line = 0;
  std::string function;
  std::string expression;
  std::string message;
  bool operator==(const Failure&) const = default;
};

// The part that stays the same when the same failure happens again: 16 hexadecimal digits.
std::string signature_of(const Failure& failure);
bool is_signature(std::string_view text);

// One line for people: "server_test.cc:42: EXPECT_EQ(a, b)".
std::string headline(const Failure& failure);

// A crash or a time-out that does not tell where: all of them look the same.
bool is_without_place(const Failure& failure);

struct Outcome {
  OutcomeKind kind = OutcomeKind::pass;
  Duration duration{};
  std::vector<Failure> failures;  // the first one names the outcome; a pass may carry reports too
  std::string signature;          // of the first failure; empty for pass and skipped
  std::string reason;             // why it was skipped

  bool failed() const { return is_failing(kind); }
};

}  // namespace unflake
