
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <pugixml.hpp>

#include "output/ci_log/ci_log.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr std::ptrdiff_t most_elements = 2'000'000;

// What a test case says about runs that failed; "flaky" and "rerun" are Maven Surefire's.
constexpr std::array failure_elements{"failure",    "error",        "flakyFailure",
                                      "flakyError", "rerunFailure", "rerunError"};

bool tells_failure(const pugi::xml_node& node) {
  return std::ranges::any_of(failure_elements,
                             [&](std::string_view name) { return node.name() == name; });
}

std::string text_in(const pugi::xml_node& node) {
  std::string text;
  for (const pugi::xml_node& child : node.children())
    if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata)
      text += child.value();
  return text;
}

std::vector<FailureElement> failures_of(const pugi::xml_node& test_case) {
  std::vector<FailureElement> failures;
  for (const pugi::xml_node& node : test_case.children()) {
    if (!tells_failure(node)) continue;
    FailureElement failure;
    failure.is_error = std::string_view(node.name()) == "error";
    failure.message = node.attribute("message").value();
    for (const pugi::xml_node& part : {node, node.child("stackTrace"), node.child("system-out")})
      failure.text += text_in(part);
    failures.push_back(std::move(failure));
  }
  return failures;
}

std::string bounded_name(std::string_view name) {
  return printable(shorten(trim(name), most_logged_name_bytes));
}

std::string name_of(const pugi::xml_node& test_case, Framework framework) {
  return case_name(test_case.attribute("classname").value(), test_case.attribute("name").value(),
                   framework);
}

std::string output_of(const pugi::xml_node& test_case) {
  std::string output;
  for (const auto* stream : {"system-out", "system-err"})
    output += text_in(test_case.child(stream)) + "\n";
  return output;
}

void read_case(const pugi::xml_node& test_case, CiLog& log) {
  const std::vector<FailureElement> failures = failures_of(test_case);
  if (test_case.child("skipped")) return;
  if (failures.empty()) {
    log.shows_passing_runs = true;
    return;
  }
  if (log.failures.size() == most_logged_failures) return;
  auto read = dialect_failures(failures);
  if (!read)
    return read_case_output(name_of(test_case, Framework::command), failures, output_of(test_case),
                            log);
  LoggedFailure logged;
  logged.test = bounded_name(name_of(test_case, read->framework));
  logged.framework = read->framework;
  logged.failures = std::move(read->failures);
  log.failures.push_back(std::move(logged));
}

// Without recursion, however deep the elements are nested.
class Cases : public pugi::xml_tree_walker {
 public:
  explicit Cases(CiLog& log) : log_(log) {}
  bool for_each(pugi::xml_node& node) override {
    if (std::string_view(node.name()) != "testcase") return true;
    any = true;
    read_case(node, log_);
    return true;
  }
  bool any = false;

 private:
  CiLog& log_;
};

}  // namespace

Result<CiLog> read_junit_log(std::string_view text) {
  constexpr auto next = "give the raw log of the CI job, or a JUnit XML file";
  if (std::ranges::count(text, '<') > most_elements)
    return usage_error("the XML file has too many elements for a test report", "", next);
  pugi::xml_document document;
  const auto parsed = document.load_buffer(text.data(), text.size());
  CiLog log;
  log.lines = split_lines(text).size();
  Cases cases(log);
  document.traverse(cases);
  if (cases.any) return log;
  if (!parsed)
    return usage_error(fmt::format("the XML file is broken: {}", parsed.description()),
                       fmt::format("byte {}", parsed.offset), next);
  return usage_error("the XML file holds no test case", "", next);
}

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

// "file.cc:12:" above what doctest prints after it
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
