#include "trace/ci_log/junit_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <pugixml.hpp>

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

std::string bounded_name(std::string_view name) {
  return printable(shorten(trim(name), most_name_bytes));
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

}  // namespace unflake
