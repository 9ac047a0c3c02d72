#include "output/ci_log/ci_log.h"

#include <signal.h>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>
#include "util/text.h"

namespace unflake {
namespace {

using EndKind = LoggedEnd::Kind;

constexpr size_t most_sources = 100;

std::string_view take_digits(std::string_view& text) {
  const std::string_view digits = leading_digits(text);
  text.remove_prefix(digits.size());
  return digits;
}

// "      Start  3: name"
std::optional<std::string_view> started_number(std::string_view line) {
  line = trim(line);
  if (!consume(line, "Start ")) return std::nullopt;
  line = trim(line);
  const std::string_view number = take_digits(line);
  if (number.empty() || !line.starts_with(": ")) return std::nullopt;
  return number;
}

struct EntryResult {
  std::string_view number;
  std::string_view name;
  std::optional<LoggedEnd> end;
};

// "   Passed  0.01 sec", "***Failed  Required regular ...", "Subprocess aborted***Exception:   0
// sec"
std::optional<LoggedEnd> end_in(std::string_view verdict) {
  verdict = trim(verdict);
  const auto parts = split_at(verdict, "***");
  if (!parts) return end_from_ctest(verdict);
  const auto end = end_from_ctest(parts->before);
  return end ? end : end_from_ctest(parts->after);
}

// " 3/10 Test  #3: name ......***Failed    0.01 sec"
std::optional<EntryResult> result_in(std::string_view line) {
  line = trim(line);
  if (!take_digits(line).empty() && (!consume(line, "/") || take_digits(line).empty()))
    return std::nullopt;
  line = trim(line);
  if (!consume(line, "Test ")) return std::nullopt;
  line = trim(line);
  if (!consume(line, "#")) return std::nullopt;
  EntryResult result;
  result.number = take_digits(line);
  if (result.number.empty() || !consume(line, ": ")) return std::nullopt;
  const size_t dots = line.rfind(" ..");
  if (dots == std::string_view::npos) return std::nullopt;
  result.name = trim(line.substr(0, dots));
  std::string_view verdict = trim(line.substr(dots));
  while (consume(verdict, ".")) {
  }
  result.end = end_in(verdict);
  return result;
}

struct SummaryLine {
  std::string_view name;
  LoggedEnd end;
};

// "<tab>  2 - name (Failed)", with labels after it, if any
std::optional<SummaryLine> summary_in(std::string_view line) {
  line = trim(line);
  if (take_digits(line).empty() || !consume(line, " - ")) return std::nullopt;
  for (size_t open = line.rfind(" ("); open != std::string_view::npos && open > 0;
       open = line.rfind(" (", open - 1))
    if (const auto end = end_from_ctest(line.substr(open + 2)))
      return SummaryLine{trim(line.substr(0, open)), *end};
  return std::nullopt;
}

// "==================== Test output for //net:server_test (shard 1 of 4):"
std::optional<std::string_view> bazel_target_in(std::string_view line) {
  const auto parts = split_at(line, "= Test output for ");
  if (!parts || !line.starts_with("====")) return std::nullopt;
  std::string_view target = parts->after;
  consume_end(target, ":");
  return trim(target.substr(0, target.find(" (")));
}

bool ends_bazel_output(std::string_view line) {
  return line.size() == 80 && line.find_first_not_of('=') == std::string_view::npos;
}

// Goes through the log of one source.
class Separation {
 public:
  void add(const LogLine& line) {
    if (in_bazel_ && ends_bazel_output(line.text)) return leave();
    if (const auto target = bazel_target_in(line.text)) return enter_bazel(*target, line);
    if (in_bazel_ || !take_ctest_line(line)) keep(line);
  }

  std::vector<LoggedProgram> finish() {
    rest_.line = rest_.lines.empty() ? 0 : rest_.lines.front().number;
    programs_.push_back(std::move(rest_));
    return std::move(programs_);
  }

 private:
  struct Entry {
    bool is_verbose = false;
    bool has_begun = false;  // what follows is the test's
    std::vector<LogLine> lines;
  };

  bool take_ctest_line(const LogLine& line) {
    if (line.text.starts_with("Test project ")) return entries_.clear(), leave(), true;
    if (line.text.starts_with("The following tests FAILED:"))
      return in_summary_ = true, leave(), true;
    if (contains(line.text, "% tests passed, ")) return leave(), true;
    if (const auto number = started_number(line.text)) return begin(*number), true;
    if (const auto result = result_in(line.text)) return end(*result, line), true;
    return take_verbose(line) || (in_summary_ && take_summary(line));
  }

  void begin(std::string_view number) {
    leave();
    entries_[std::string(number)] = {};
  }

  // "3: text" of `ctest -V`, which begins with words of CTest itself, from the command to the
  // time-out.
  bool take_verbose(const LogLine& line) {
    const std::string_view number = leading_digits(line.text);
    if (number.empty() || number.size() == line.text.size() || line.text[number.size()] != ':')
      return false;
    const auto entry = entries_.find(std::string(number));
    if (entry == entries_.end()) return false;
    std::string_view text = line.text.substr(number.size() + 1);
    consume(text, " ");
    if (text.starts_with("Test command: ")) entry->second.is_verbose = true;
    if (!entry->second.is_verbose) return false;
    entry->second.lines.push_back({text, line.source, line.number});
    if (text.starts_with("Test timeout computed to be: ") &&
        !std::exchange(entry->second.has_begun, true))
      entry->second.lines.clear();
    return true;
  }

  // With --output-on-failure the output follows the result.
  void end(const EntryResult& result, const LogLine& line) {
    leave();
    Entry entry = std::move(entries_[std::string(result.number)]);
    entries_.erase(std::string(result.number));
    if (!result.end) return;
    programs_.push_back(
        {std::string(result.name), *result.end, std::move(entry.lines), line.number});
    if (result.end->kind == EndKind::passed) return;
    failed_.emplace(result.name);
    in_entry_ = !entry.is_verbose;
  }

  bool take_summary(const LogLine& line) {
    const auto summary = summary_in(line.text);
    if (!summary) return in_summary_ = trim(line.text).empty(), false;
    if (failed_.insert(std::string(summary->name)).second)
      programs_.push_back({std::string(summary->name), summary->end, {}, line.number});
    return true;
  }

  void enter_bazel(std::string_view target, const LogLine& line) {
    programs_.push_back({std::string(target), {EndKind::unknown, 0}, {}, line.number});
    in_entry_ = in_bazel_ = true;
  }

  void leave() { in_entry_ = in_bazel_ = false; }

  void keep(const LogLine& line) { (in_entry_ ? programs_.back() : rest_).lines.push_back(line); }

  std::vector<LoggedProgram> programs_;
  LoggedProgram rest_;
  std::map<std::string, Entry> entries_;  // that are running, by CTest's number
  std::set<std::string> failed_;          // entries
  bool in_entry_ = false;                 // the lines are of the last program
  bool in_bazel_ = false;
  bool in_summary_ = false;
};

}  // namespace

std::vector<LoggedProgram> programs_in(const std::vector<LogLine>& lines) {
  std::map<std::string_view, Separation> by_source;
  for (const LogLine& line : lines) {
    const bool is_known = by_source.size() < most_sources || by_source.contains(line.source);
    by_source[is_known ? line.source : ""].add(line);
  }
  std::vector<LoggedProgram> all;
  for (auto& [source, separation] : by_source)
    for (LoggedProgram& program : separation.finish()) all.push_back(std::move(program));
  return all;
}

namespace {

struct Word {
  std::string_view text;
  LoggedEnd end;
};

// As in strsignal() and bash.
constexpr std::array shell_words{
    Word{"Segmentation fault", {EndKind::signalled, SIGSEGV}},
    Word{"Aborted", {EndKind::signalled, SIGABRT}},
    Word{"Illegal instruction", {EndKind::signalled, SIGILL}},
    Word{"Bus error", {EndKind::signalled, SIGBUS}},
    Word{"Floating point exception", {EndKind::signalled, SIGFPE}},
    Word{"Trace/breakpoint trap", {EndKind::signalled, SIGTRAP}},
    Word{"Killed", {EndKind::signalled, SIGKILL}},
};

constexpr std::array cancellations{
    "The operation was canceled.", "ERROR: Job failed: execution took longer than ",
    "Cancelling nested steps due to timeout", "has exceeded the maximum execution time of "};

// CTest's, of its result lines and of its summary.
constexpr std::array ctest_words{
    Word{"Passed", {EndKind::passed, 0}},
    Word{"Failed", {EndKind::failed, 0}},
    Word{"Timeout", {EndKind::timed_out, 0}},
    Word{"Exception: SegFault", {EndKind::signalled, SIGSEGV}},
    Word{"SEGFAULT", {EndKind::signalled, SIGSEGV}},
    Word{"Exception: Illegal", {EndKind::signalled, SIGILL}},
    Word{"ILLEGAL", {EndKind::signalled, SIGILL}},
    Word{"Exception: Numerical", {EndKind::signalled, SIGFPE}},
    Word{"NUMERICAL", {EndKind::signalled, SIGFPE}},
    Word{"Exception: Interrupt", {EndKind::signalled, SIGINT}},
    Word{"INTERRUPT", {EndKind::signalled, SIGINT}},
    Word{"Subprocess aborted", {EndKind::signalled, SIGABRT}},
    Word{"Child aborted", {EndKind::signalled, SIGABRT}},
    Word{"Bus error", {EndKind::signalled, SIGBUS}},
    Word{"Subprocess killed", {EndKind::signalled, SIGKILL}},
    Word{"Child killed", {EndKind::signalled, SIGKILL}},
    Word{"Subprocess terminated", {EndKind::signalled, SIGTERM}},
    Word{"Not Run", {EndKind::not_started, 0}},
    Word{"NOT_RUN", {EndKind::not_started, 0}},
    Word{"BAD_COMMAND", {EndKind::not_started, 0}},
    Word{"OTHER_FAULT", {EndKind::failed, 0}},
    Word{"Exception: Other", {EndKind::failed, 0}},
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

// The status that a shell gives to a signal, and that of timeout(1).
std::optional<LoggedEnd> end_from_status(std::string_view digits) {
  int status = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), status);
  if (status == 124) return LoggedEnd{EndKind::timed_out, 0};
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
    if (contains(line, words)) return LoggedEnd{EndKind::timed_out, 0};
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
