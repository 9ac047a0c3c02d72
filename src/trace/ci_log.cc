#include "trace/ci_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trace/ci_log/junit_log.h"
#include "trace/ci_log/log_lines.h"
#include "trace/ci_log/log_programs.h"
#include "trace/ci_log/log_reading.h"
#include "trace/scan.h"
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

}  // namespace unflake
