#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"

namespace unflake {

// Pure functions over text without colours: the failures that it shows, in its order.
std::vector<Failure> parse_gtest_failures(std::string_view text);
std::vector<Failure> parse_catch2_failures(std::string_view text);
std::vector<Failure> parse_doctest_failures(std::string_view text);
std::vector<Failure> parse_boost_failures(std::string_view text);
std::vector<Failure> parse_sanitizer_reports(std::string_view text);

// Of the first report about memory that is gone: who used it, who had freed it, who had allocated
// it, and who had made these threads. A line each; where only the C library noticed, what it said
// and how to learn more. Empty: the output is about nothing of the kind.
std::vector<std::string> memory_history(std::string_view text);
std::vector<Failure> parse_valgrind_reports(std::string_view text);
std::vector<Failure> parse_native_aborts(std::string_view text);

inline constexpr size_t most_failures = 50;

// What one test framework prints.
struct FrameworkOutput {
  Framework framework;
  std::vector<Failure> (*failures)(std::string_view text);
  // The framework got to its summary.
  bool (*finished)(std::string_view text);
  // No test has the name that was asked for.
  bool (*ran_nothing)(std::string_view text);
  // Why a test skipped itself; may be empty. Null: tests of this framework cannot.
  std::optional<std::string> (*skip_reason)(std::string_view text);
  // It said that a test begins, but not that one ended or how all ended. Silence is not a
  // sign: a program may have its own reporter, or none.
  bool (*broke_off)(std::string_view text);
};

// Strictest format first: for a command of unknown framework, the first that recognises
// something explains the failure.
std::span<const FrameworkOutput> framework_outputs();

// Whether unflake asked Boost.Test for words about the progress of tests; its output without them.
bool logs_progress(const Test& test);
std::string without_boost_progress(std::string_view text);

extern const FrameworkOutput gtest_output;
extern const FrameworkOutput catch2_output;
extern const FrameworkOutput doctest_output;
extern const FrameworkOutput boost_output;

// What a failing run said, whoever said it.
struct Evidence {
  std::vector<Failure> reports;                // of sanitizers and Valgrind
  std::vector<Failure> aborts;                 // last words of the C and C++ run-time libraries
  std::vector<Failure> checks;                 // of a test framework
  const FrameworkOutput* framework = nullptr;  // whose checks these are
};

// `framework` is whose output to expect; command and ctest: anybody's.
Evidence evidence_in(std::string_view text, Framework framework);

// Text of tests is not trusted: every field is cut to a sane length and made printable.
Failure bounded(Failure failure);

// A stretch of output with nothing missing inside. Where the middle of a stream was dropped there
// are two, and they are never joined: a line that spans the gap was never printed.
struct TextPiece {
  std::string text;
  bool cut_at_start = false;
  bool cut_at_end = false;
};

std::vector<TextPiece> pieces_of(const ProcessResult& process);

// Only whole lines, without colours.
std::string readable_lines(const TextPiece& piece);

// Whether a line was printed by a logger (time stamp, level, bracketed source) and not by an author
// who explains an assertion.
bool looks_like_log(std::string_view line);

// The line of a program's output that best says why it failed; empty when there is none.
std::string_view most_telling_line(const std::vector<std::string>& texts);

// The first check that a program without a known framework reports as failed, with its place in the
// sources: "FAIL test/dns.c:12: assert(a == b): 1 vs 2".
std::optional<Failure> plain_check_in(const std::vector<std::string>& texts);

// One line of a stack as a sanitizer or Valgrind prints it.
struct StackFrame {
  std::string function;  // "server+0x1f" where only the address is known
  std::string file;
  int line = 0;
  std::string module;  // the executable or library, without its folder
  auto operator<=>(const StackFrame&) const = default;
};

//     #0 0x55d1 in app::Server::push(int) /src/server.cc:9:12 (server+0x1f) (BuildId: 15)
std::optional<StackFrame> parse_sanitizer_frame(std::string_view line);

//    at 0x10B607: app::Server::push(int) (server.cc:9)
std::optional<StackFrame> parse_valgrind_frame(std::string_view line);

// Frames that are the same whatever the mistake: allocator, C and C++ libraries, the tool itself.
bool is_runtime_frame(const StackFrame& frame);

}  // namespace unflake
