#include <signal.h>

#include <array>
#include <charconv>

#include "trace/ci_log/log_programs.h"
#include "trace/scan.h"
#include "util/text.h"

namespace unflake {
namespace {

using Kind = LoggedEnd::Kind;

struct Word {
  std::string_view text;
  LoggedEnd end;
};

// As strsignal() and bash have it.
constexpr std::array shell_words{
    Word{"Segmentation fault", {Kind::signalled, SIGSEGV}},
    Word{"Aborted", {Kind::signalled, SIGABRT}},
    Word{"Illegal instruction", {Kind::signalled, SIGILL}},
    Word{"Bus error", {Kind::signalled, SIGBUS}},
    Word{"Floating point exception", {Kind::signalled, SIGFPE}},
    Word{"Trace/breakpoint trap", {Kind::signalled, SIGTRAP}},
    Word{"Killed", {Kind::signalled, SIGKILL}},
};

constexpr std::array cancellations{
    "The operation was canceled.", "ERROR: Job failed: execution took longer than ",
    "Cancelling nested steps due to timeout", "has exceeded the maximum execution time of "};

// CTest's, of its result lines and of its summary.
constexpr std::array ctest_words{
    Word{"Passed", {Kind::passed, 0}},
    Word{"Failed", {Kind::failed, 0}},
    Word{"Timeout", {Kind::timed_out, 0}},
    Word{"Exception: SegFault", {Kind::signalled, SIGSEGV}},
    Word{"SEGFAULT", {Kind::signalled, SIGSEGV}},
    Word{"Exception: Illegal", {Kind::signalled, SIGILL}},
    Word{"ILLEGAL", {Kind::signalled, SIGILL}},
    Word{"Exception: Numerical", {Kind::signalled, SIGFPE}},
    Word{"NUMERICAL", {Kind::signalled, SIGFPE}},
    Word{"Exception: Interrupt", {Kind::signalled, SIGINT}},
    Word{"INTERRUPT", {Kind::signalled, SIGINT}},
    Word{"Subprocess aborted", {Kind::signalled, SIGABRT}},
    Word{"Child aborted", {Kind::signalled, SIGABRT}},
    Word{"Bus error", {Kind::signalled, SIGBUS}},
    Word{"Subprocess killed", {Kind::signalled, SIGKILL}},
    Word{"Child killed", {Kind::signalled, SIGKILL}},
    Word{"Subprocess terminated", {Kind::signalled, SIGTERM}},
    Word{"Not Run", {Kind::not_started, 0}},
    Word{"NOT_RUN", {Kind::not_started, 0}},
    Word{"BAD_COMMAND", {Kind::not_started, 0}},
    Word{"OTHER_FAULT", {Kind::failed, 0}},
    Word{"Exception: Other", {Kind::failed, 0}},
};

// "Segmentation fault", "Aborted (core dumped)", "run.sh: line 3:  123 Killed      ./server_test"
std::optional<LoggedEnd> told_by_shell(std::string_view line) {
  const auto told = split_at(line, ": line ");
  if (told) {
    line = told->after;
    line.remove_prefix(leading_digits(line).size());
    consume(line, ":");
    line = trim(line);
    line.remove_prefix(leading_digits(line).size());
  }
  line = trim(line);
  for (const Word& word : shell_words) {
    std::string_view rest = line;
    if (!consume(rest, word.text)) continue;
    if (rest.empty() || rest.starts_with(" (core dumped)") || (told && rest.starts_with(' ')))
      return word.end;
  }
  return std::nullopt;
}

// The status that a shell makes of a signal, and that of timeout(1).
std::optional<LoggedEnd> end_from_status(std::string_view digits) {
  int status = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), status);
  if (status == 124) return LoggedEnd{Kind::timed_out, 0};
  for (const Word& word : shell_words)
    if (status == 128 + word.end.signal) return word.end;
  return std::nullopt;
}

// "Process completed with exit code 139.", "make: *** [Makefile:3: check] Error 134"
std::optional<LoggedEnd> told_by_status(std::string_view line) {
  for (const auto* mark : {"exit code ", "exit status ", "] Error ", "exited with code "})
    if (const auto parts = split_at(line, mark))
      return end_from_status(leading_digits(parts->after));
  return std::nullopt;
}

}  // namespace

std::optional<LoggedEnd> death_in(std::string_view line) {
  constexpr size_t most_bytes = 400;
  if (line.size() > most_bytes) return std::nullopt;
  for (const auto* words : cancellations)
    if (contains(line, words)) return LoggedEnd{Kind::timed_out, 0};
  if (const auto end = told_by_shell(line)) return end;
  return told_by_status(line);
}

std::optional<LoggedEnd> end_from_ctest(std::string_view word) {
  word = trim(word);
  if (contains(word, "Disabled")) return std::nullopt;
  for (const Word& known : ctest_words)
    if (word.starts_with(known.text)) return known.end;
  return std::nullopt;
}

}  // namespace unflake
