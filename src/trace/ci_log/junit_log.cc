#include "trace/ci_log/junit_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <pugixml.hpp>

#include "trace/ci_log/log_lines.h"
#include "trace/ci_log/log_programs.h"
#include "trace/ci_log/log_reading.h"
#include "trace/scan.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr std::ptrdiff_t most_elements = 2'000'000;
constexpr size_t most_name_bytes = 500;

// What a test case says of runs that failed; "flaky" and "rerun" are Maven Surefire's.
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

std::string replaced(std::string text, char from, char to) {
  std::ranges::replace(text, from, to);
  return text;
}

std::string name_of(const pugi::xml_node& test_case, Framework framework) {
  const std::string suite = test_case.attribute("classname").value();
  const std::string name = test_case.attribute("name").value();
  if (framework == Framework::catch2 || framework == Framework::doctest) return name;
  if (suite.empty() || suite == name) return name;
  if (framework == Framework::boost_test) return replaced(suite, '.', '/') + "/" + name;
  return suite + "." + name;
}

std::string bounded_name(std::string_view name) {
  return printable(shorten(trim(name), most_name_bytes));
}

// Of failures in a framework's own dialect: as if it had printed them.
std::optional<LoggedFailure> read_dialect(const pugi::xml_node& test_case,
                                          const std::vector<FailureElement>& failures) {
  LoggedFailure logged;
  std::string printed;
  for (const FailureElement& failure : failures) {
    const auto console = console_text(failure);
    if (!console) continue;
    logged.framework = console->framework;
    printed += console->text;
  }
  logged.failures = failures_in(std::move(printed), logged.framework, {}, true);
  if (logged.failures.empty()) return std::nullopt;
  logged.test = bounded_name(name_of(test_case, logged.framework));
  return logged;
}

// Of anything else: as the output of a program, which it is when CTest or unflake wrote the file.
void read_output(const pugi::xml_node& test_case, const std::vector<FailureElement>& failures,
                 CiLog& log) {
  std::string output;
  LoggedProgram program;
  program.end.kind = LoggedEnd::Kind::failed;
  for (const FailureElement& failure : failures) {
    output += failure.text + "\n";
    if (const auto end = end_from_ctest(failure.message)) program.end = *end;
  }
  for (const auto* stream : {"system-out", "system-err"})
    output += text_in(test_case.child(stream)) + "\n";
  if (trim(output).empty()) output = failures.front().message;
  const std::string plain = without_escape_sequences(output);
  program.entry = name_of(test_case, Framework::command);
  program.lines = undecorated_lines(plain);
  const size_t known = log.failures.size();
  read_program(program, log);
  for (size_t i = known; i < log.failures.size(); ++i) log.failures[i].line = 0;
}

void read_case(const pugi::xml_node& test_case, CiLog& log) {
  const std::vector<FailureElement> failures = failures_of(test_case);
  if (test_case.child("skipped")) return;
  if (failures.empty()) {
    log.shows_passing_runs = true;
    return;
  }
  if (log.failures.size() == most_logged_failures) return;
  if (auto logged = read_dialect(test_case, failures))
    log.failures.push_back(std::move(*logged));
  else
    read_output(test_case, failures, log);
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

}  // namespace unflake
