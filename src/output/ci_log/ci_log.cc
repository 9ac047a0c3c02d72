#include "output/ci_log/ci_log.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include "model/signature.h"
#include "output/ci_log/junit_log.h"
#include "output/ci_log/log_lines.h"
#include "output/ci_log/log_programs.h"
#include "output/ci_log/log_reading.h"
#include "util/scan.h"
#include "util/text.h"

namespace unflake {
namespace {

struct Magic {
  std::string_view bytes;
  std::string_view what;
  std::string_view next;
};

constexpr std::array known_files{
    Magic{"PK\x03\x04", "a ZIP archive", "unpack it and give the log of the job that failed"},
    Magic{"\x1f\x8b", "compressed", "unpack it with gunzip first"},
    Magic{"\x28\xb5\x2f\xfd", "compressed", "unpack it with zstd -d first"},
    Magic{"\x7f"
          "ELF",
          "a program", "give the log of a run of its tests"},
    Magic{"\xff\xfe", "in UTF-16", "convert it with: iconv -f UTF-16 -t UTF-8"},
    Magic{"\xfe\xff", "in UTF-16", "convert it with: iconv -f UTF-16 -t UTF-8"},
};

bool is_odd(char c) {
  return static_cast<unsigned char>(c) < 0x20 && !is_blank(c) && c != '\x1b' && c != '\b' &&
         c != '\a';
}

// A test may print a few bytes that are no text.
bool is_binary(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, is_odd)) > text.size() / 50;
}

std::optional<Error> refusal(std::string_view text) {
  if (trim(text).empty())
    return usage_error("the log is empty", "", "give the log of a run in which the test failed");
  for (const Magic& magic : known_files)
    if (text.starts_with(magic.bytes))
      return usage_error(fmt::format("the log is {}", magic.what), "", std::string(magic.next));
  if (is_binary(text))
    return usage_error("the log is not text", "",
                       "give the raw log of the CI job, or a JUnit XML file");
  return std::nullopt;
}

// file.cc:12:5: error: ..., and what linkers and build tools say
bool is_build_error(std::string_view line) {
  if (line.starts_with("CMake Error") || line.starts_with("ninja: build stopped")) return true;
  if (contains(line, "undefined reference to ") || line.starts_with("collect2: error: "))
    return true;
  for (const auto* mark : {": error: ", ": fatal error: "})
    if (const auto parts = split_at(line, mark); parts && source_line_at_end(parts->before))
      return true;
  return false;
}

Error nothing_learnt(const std::vector<LogLine>& lines) {
  const auto broken =
      std::ranges::find_if(lines, [](const LogLine& line) { return is_build_error(line.text); });
  if (broken != lines.end())
    return usage_error(fmt::format("the log is of a build that failed, and no test ran: {}",
                                   printable(shorten(trim(broken->text), 200))),
                       fmt::format("line {}", broken->number),
                       "give the log of a run in which the test failed");
  return usage_error("the log shows no test that unflake can recognise", "",
                     "give the raw log of the job that ran the test; where CTest ran it, with "
                     "--output-on-failure");
}

bool is_xml(std::string_view text) {
  consume(text, "\xEF\xBB\xBF");
  text = trim(text.substr(0, 200));
  return text.starts_with("<?xml") || text.starts_with("<testsuite");
}

void sort_by_line(CiLog& log) {
  std::ranges::stable_sort(log.failures, {}, &LoggedFailure::line);
}

}  // namespace

Result<CiLog> read_ci_log(std::string_view text) {
  if (auto error = refusal(text)) return *error;
  if (is_xml(text)) return read_junit_log(text);
  const std::string plain = without_escape_sequences(text);
  const std::vector<LogLine> lines = undecorated_lines(plain);
  CiLog log;
  log.lines = static_cast<size_t>(std::ranges::count(text, '\n')) + !text.ends_with('\n');
  for (const LoggedProgram& program : programs_in(lines)) read_program(program, log);
  sort_by_line(log);
  if (log.failures.empty() && !log.shows_passing_runs) return nothing_learnt(lines);
  return log;
}

namespace {

// Reporters wrap long titles and take blanks off their ends.
std::string with_single_blanks(std::string_view text) {
  std::string plain;
  for (const char c : trim(text)) {
    if (!is_blank(c))
      plain += c;
    else if (!plain.ends_with(' '))
      plain += ' ';
  }
  return plain;
}

// "name #2" is the second test of its name, which the log cannot tell from the first.
std::string_view without_count(std::string_view name) {
  const size_t mark = name.rfind(" #");
  if (mark == std::string_view::npos) return name;
  const std::string_view count = name.substr(mark + 2);
  return !count.empty() && leading_digits(count) == count ? name.substr(0, mark) : name;
}

bool ends_with_part(std::string_view text, std::string_view part, char separator) {
  return text.size() > part.size() && !part.empty() && text.ends_with(part) &&
         text[text.size() - part.size() - 1] == separator;
}

// JUnit files add sections to the name of a case, put more before that of its suite, and doctest's
// leave the suite out.
bool is_same_case(const LoggedFailure& logged, std::string_view said, std::string_view name) {
  if (said == name) return true;
  switch (logged.framework) {
    case Framework::catch2:
      return said.starts_with(std::string(name) + "/");
    case Framework::doctest:
      return ends_with_part(name, said, '/') || said.starts_with(std::string(name) + "/");
    case Framework::command:
      return ends_with_part(said, name, '.');
    default:
      return false;
  }
}

bool calls_it(const LoggedFailure& logged, const std::string& name) {
  const std::string test = with_single_blanks(logged.test);
  const std::string entry = with_single_blanks(logged.entry);
  if (!test.empty() && is_same_case(logged, test, name)) return true;
  if (entry.empty()) return false;
  if (entry == name || (!test.empty() && is_same_case(logged, entry + "/" + test, name)))
    return true;
  return test.empty() && ends_with_part(entry, name, '.');
}

// "//net:server_test" without a case is everything that the program runs.
bool is_bazel_target_of(const LoggedFailure& logged, const Test& test) {
  return logged.test.empty() && logged.entry.starts_with("//") &&
         ends_with_part(logged.entry, test.id.target, ':');
}

bool has_no_name(const LoggedFailure& logged) {
  return logged.test.empty() && logged.entry.empty();
}

std::string full_name(const LoggedFailure& logged) {
  return logged.test.empty() ? logged.entry : logged.test;
}

// What the log is about instead, for an error's text.
std::string names_in(const CiLog& log) {
  constexpr size_t most_names = 5;
  std::vector<std::string> names;
  for (const LoggedFailure& logged : log.failures) {
    const std::string name = full_name(logged);
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
    if (names.size() > most_names) break;
  }
  const bool more = names.size() > most_names;
  if (more) names.back() = "...";
  return join(names, ", ");
}

Error shows_no_failure(const CiLog& log, const std::string& of) {
  if (log.failures.empty())
    return usage_error("the log shows no failing test, only passing ones", "",
                       "give the log of a run in which the test failed");
  return usage_error(fmt::format("the log does not tell of a failure of {}", of), "",
                     fmt::format("it names {}; give the log of this target, or one of these tests",
                                 names_in(log)));
}

bool agrees(std::string_view logged, std::string_view seen) {
  return logged.empty() || logged == seen;
}

std::string words_of(const Failure& failure) {
  return normalise(said_in(failure.message));
}

// Without the exit status, all ways in which a test fails by its end look the same.
bool is_same_kind(const Failure& logged, const Failure& seen) {
  if (logged.kind != FailureKind::exit_status || !logged.expression.empty())
    return logged.kind == seen.kind;
  return seen.kind == FailureKind::exit_status || seen.kind == FailureKind::output_pattern ||
         seen.kind == FailureKind::unexpected_pass;
}

}  // namespace

bool is_named(const LoggedFailure& logged, const Test& test) {
  const std::string name = with_single_blanks(test.id.name);
  return calls_it(logged, name) || calls_it(logged, std::string(without_count(name))) ||
         is_bazel_target_of(logged, test);
}

bool tells_of(const Failure& logged, const Failure& seen) {
  if (signature_of(logged) == signature_of(seen)) return true;
  if (!is_same_kind(logged, seen)) return false;
  if (logged.kind == FailureKind::exit_status && seen.kind != FailureKind::exit_status) return true;
  return agrees(base_name(logged.file), base_name(seen.file)) &&
         (logged.line == 0 || logged.line == seen.line) && agrees(logged.function, seen.function) &&
         agrees(logged.expression, seen.expression) && agrees(words_of(logged), words_of(seen));
}

Result<std::vector<LoggedFailure>> logged_failures_of(const Test& test, const CiLog& log) {
  std::vector<LoggedFailure> found;
  for (const LoggedFailure& logged : log.failures)
    if (is_named(logged, test)) found.push_back(logged);
  const bool names_nothing = std::ranges::all_of(log.failures, has_no_name);
  if (found.empty() && names_nothing) found = log.failures;
  if (found.empty()) return shows_no_failure(log, to_string(test.id));
  return found;
}

Result<std::vector<size_t>> tests_named_in(const CiLog& log, const std::vector<Test>& tests) {
  std::vector<size_t> named;
  for (const LoggedFailure& logged : log.failures)
    for (size_t i = 0; i < tests.size(); ++i)
      if (is_named(logged, tests[i]) && std::ranges::find(named, i) == named.end())
        named.push_back(i);
  if (!named.empty()) return named;
  if (!log.failures.empty() && std::ranges::all_of(log.failures, has_no_name))
    return usage_error("the log shows a failure and does not say of which test", "",
                       "name the test on the command line");
  return shows_no_failure(log, "a test of this target");
}

}  // namespace unflake
