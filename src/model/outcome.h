#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/test.h"
#include "util/time.h"

namespace unflake {

enum class OutcomeKind { pass, fail, crash, timeout, skipped };

std::string_view to_string(OutcomeKind kind);
std::optional<OutcomeKind> outcome_kind_from(std::string_view name);

inline bool is_failing(OutcomeKind kind) {
  return kind != OutcomeKind::pass && kind != OutcomeKind::skipped;
}

enum class FailureKind {
  assertion,        // a framework's check, or assert()
  exception,        // uncaught, or caught by the framework around the test
  signal,           // died of a signal with no better explanation
  exit_status,      // only the exit status says so
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
std::optional<FailureKind> failure_kind_from(std::string_view name);
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

// A crash or a time-out that does not say where: all of them look the same.
bool is_without_place(const Failure& failure);

struct Outcome {
  OutcomeKind kind = OutcomeKind::pass;
  Duration duration{};
  std::vector<Failure> failures;  // the first one names the outcome; a pass may carry reports too
  std::string signature;          // of the first failure; empty for pass and skipped
  std::string reason;             // why it was skipped

  bool failed() const { return is_failing(kind); }
};

// What a process wrote. When the stream was longer than the limits, its middle is missing.
struct CapturedOutput {
  std::string head;
  std::string tail;    // empty unless something was dropped between the two
  uint64_t total = 0;  // bytes that were written

  uint64_t dropped() const { return total - head.size() - tail.size(); }
  // head + tail, with a line that says how much is missing.
  std::string text() const;
};

// Where a thread was when its process ran out of time or died of a signal.
struct ThreadAtEnd {
  struct Frame {
    std::string function;
    std::string file;
    int line = 0;
    bool is_project = false;
  };
  int pid = 0;
  int tid = 0;
  std::string name;           // as the kernel has it
  std::vector<Frame> frames;  // innermost first, inlined ones too
  std::string why_empty;      // when it could not be looked at
  std::string call{};         // the timing API that it is in, when the agent is loaded

  bool is_main() const { return pid == tid; }
};

struct OutputLimits {
  size_t head = 512 * 1024;
  size_t tail = 512 * 1024;
  bool split_errors = false;  // keep standard error apart
};

// How a process ended, before anybody asks what that means for the test.
struct ProcessResult {
  enum class End { exited, signalled, timed_out, cancelled, not_started };

  End end = End::exited;
  int code = 0;       // exit status, signal number, or errno of a failed start
  std::string error;  // not_started: what failed, with the path
  std::chrono::system_clock::time_point started;
  Duration duration{};
  Duration user_cpu{};
  Duration system_cpu{};
  int64_t max_rss_kib = 0;
  bool dumped_core = false;
  // timed_out: of the process first, then of its own. signalled: of the thread that crashed, when
  // it could be seen.
  std::vector<ThreadAtEnd> thread_stacks;
  // timed_out: nobody was left who could have gone on. Who waits, and for whom; 0: nobody known.
  struct Waiting {
    int pid = 0;
    int tid = 0;
    uint64_t object = 0;
    int for_tid = 0;
  };
  std::vector<Waiting> deadlock;
  std::string no_fork_server;  // why it was spawned though a fork server was wanted; reported once
  int leftovers = 0;           // processes that the test left running and that were killed
  CapturedOutput output;  // standard output and, unless kept apart, standard error in one stream
  CapturedOutput errors;  // standard error, when kept apart
};

// Nothing was started, and trying again would not change that: what it takes is not there.
bool lacks_something(const ProcessResult& process);

// All that is kept of the output, standard error after standard output; any bytes.
std::string whole_output(const ProcessResult& process);

// A failure's message has two voices. What the author of the test or of the code wrote is said;
// what was only seen this time (values, context, output that follows) is shown, indented by two
// spaces. Only the words tell one failure from another.
class Message {
 public:
  void say(std::string_view line);
  void show(std::string_view line);
  void add_line(std::string_view line, bool said) { said ? say(line) : show(line); }
  std::string text() && { return std::move(text_); }

 private:
  void add(std::string_view indent, std::string_view line);
  std::string text_;
  size_t lines_ = 0;
};

// The lines that were said.
std::string said_in(std::string_view message);

// The text with everything that differs from one run or machine to the next made equal: numbers
// with their units, addresses, dates, identifiers of processes and threads, UUIDs, temporary paths,
// the folders above a file. Words stay, and so do the digits inside them (int32_t, sha256, v2).
std::string normalise(std::string_view text);

}  // namespace unflake
