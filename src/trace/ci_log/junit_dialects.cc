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

using Text = std::optional<std::string>;

std::string replaced(std::string text, char from, char to) {
  std::ranges::replace(text, from, to);
  return text;
}

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

// "file.cc:12" above what GoogleTest prints below "file.cc:12: Failure"
Text gtest_text(const FailureElement& failure) {
  const std::string_view text = trim(failure.text);
  const std::string_view place = first_line(text);
  if (place != "unknown file" && !source_line_at_end(place)) return std::nullopt;
  return fmt::format("{}: Failure{}\n", place, text.substr(place.size()));
}

// Catch2's console reporter has a label above each paragraph, its JUnit reporter above some.
std::string_view catch2_label(const FailureElement& failure, std::string_view line) {
  if (!failure.is_error) return "with message:";
  return line.starts_with("SIG") ? "due to a fatal error condition:"
                                 : "due to unexpected exception with message:";
}

// FAILED: / expression / with expansion: / values / messages / at file.cc:12
Text catch2_text(const FailureElement& failure) {
  const auto lines = split_lines(trim(failure.text));
  if (lines.size() < 2 || lines.front() != "FAILED:" || !lines.back().starts_with("at "))
    return std::nullopt;
  std::string text = fmt::format("{}: FAILED:\n", lines.back().substr(3));
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (line.starts_with("  ") || line == "with expansion:")
      text.append(line).push_back('\n');
    else
      text += fmt::format("{}\n  {}\n", catch2_label(failure, line), line);
  }
  return text;
}

// "file.cc:12:" above what doctest prints behind it
Text doctest_text(const FailureElement& failure) {
  const std::string_view text = trim(failure.text);
  std::string_view place = first_line(text);
  if (!consume_end(place, ":") || !source_line_at_end(place)) return std::nullopt;
  const std::string_view rest = trim(text.substr(place.size() + 1));
  return fmt::format("{}: ERROR: {}\n\n", place, rest);
}

// "- file   : server.cc", "- line: 12"
std::string_view boost_field(std::string_view text, std::string_view name) {
  for (LineReader in(text); !in.done(); in.advance()) {
    std::string_view line = in.line();
    if (!consume(line, "- ") || !consume(line, name)) continue;
    line = trim(line);
    if (consume(line, ":")) return trim(line);
  }
  return {};
}

std::string boost_assertion(std::string_view text) {
  const auto message = split_at(text, "- message: ");
  return fmt::format("{}({}): error: in \"\": {}\n", boost_field(text, "file"),
                     boost_field(text, "line"), message ? trim(message->after) : "");
}

std::string boost_exception(std::string_view text) {
  const auto trace = split_at(text, "EXCEPTION STACK TRACE: --------------\n");
  const auto checkpoint = split_at(text, "Last checkpoint:");
  std::string_view what = trace ? trace->after : "";
  what = trim(what.substr(0, what.find("\n-----")));
  std::string console = fmt::format("unknown location(0): fatal error: in \"\": {}\n", what);
  if (checkpoint)
    console += fmt::format("{}({}): last checkpoint\n", boost_field(checkpoint->after, "file"),
                           boost_field(checkpoint->after, "line"));
  return console;
}

Text boost_text(const FailureElement& failure) {
  const std::string_view text = trim(failure.text);
  if (text.starts_with("ASSERTION FAILURE:")) return boost_assertion(text);
  if (text.starts_with("UNCAUGHT EXCEPTION:")) return boost_exception(text);
  return std::nullopt;
}

struct Dialect {
  Framework framework;
  Text (*console)(const FailureElement& failure);
};

constexpr std::array dialects{
    Dialect{Framework::catch2, catch2_text}, Dialect{Framework::boost_test, boost_text},
    Dialect{Framework::doctest, doctest_text}, Dialect{Framework::gtest, gtest_text}};

}  // namespace

std::optional<ConsoleText> console_text(const FailureElement& failure) {
  for (const Dialect& dialect : dialects)
    if (Text text = dialect.console(failure)) return ConsoleText{dialect.framework, *text};
  return std::nullopt;
}

std::optional<DialectFailures> dialect_failures(const std::vector<FailureElement>& elements) {
  DialectFailures read{Framework::command, {}};
  std::string printed;
  for (const FailureElement& element : elements) {
    const auto console = console_text(element);
    if (!console) continue;
    read.framework = console->framework;
    printed += console->text;
  }
  read.failures = failures_in(std::move(printed), read.framework, {}, true);
  if (read.failures.empty()) return std::nullopt;
  return read;
}

void read_case_output(const std::string& entry, const std::vector<FailureElement>& elements,
                      std::string output, CiLog& log) {
  std::string all;
  LoggedProgram program;
  program.end.kind = LoggedEnd::Kind::failed;
  for (const FailureElement& element : elements) {
    all += element.text + "\n";
    if (const auto end = end_from_ctest(element.message)) program.end = *end;
  }
  all += output;
  if (trim(all).empty() && !elements.empty()) all = elements.front().message;
  const std::string plain = without_escape_sequences(all);
  program.entry = entry;
  program.lines = undecorated_lines(plain);
  const size_t known = log.failures.size();
  read_program(program, log);
  for (size_t i = known; i < log.failures.size(); ++i) log.failures[i].line = 0;
}

std::string case_name(const std::string& classname, const std::string& name, Framework framework) {
  if (framework == Framework::catch2 || framework == Framework::doctest) return name;
  if (classname.empty() || classname == name) return name;
  if (framework == Framework::boost_test) return replaced(classname, '.', '/') + "/" + name;
  return classname + "." + name;
}

}  // namespace unflake
