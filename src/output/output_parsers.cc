#include "output/output_parsers.h"

#include <array>

#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_name_bytes = 500;
constexpr size_t most_message_bytes = 4000;

void append(std::vector<Failure>& all, std::vector<Failure> more) {
  for (Failure& failure : more) {
    if (all.size() == most_failures) return;
    all.push_back(bounded(std::move(failure)));
  }
}

bool may_print(Framework tested, Framework printed) {
  return tested == printed || tested == Framework::ctest || tested == Framework::command;
}

void add_checks(Evidence& evidence, std::string_view text, Framework framework) {
  for (const FrameworkOutput& output : framework_outputs()) {
    if (!may_print(framework, output.framework)) continue;
    append(evidence.checks, output.failures(text));
    if (evidence.checks.empty()) continue;
    evidence.framework = &output;
    return;
  }
}

}  // namespace

std::span<const FrameworkOutput> framework_outputs() {
  static const std::array table{gtest_output, catch2_output, boost_output, doctest_output};
  return table;
}

Evidence evidence_in(std::string_view text, Framework framework) {
  Evidence evidence;
  append(evidence.reports, parse_sanitizer_reports(text));
  append(evidence.reports, parse_valgrind_reports(text));
  append(evidence.aborts, parse_native_aborts(text));
  add_checks(evidence, text, framework);
  return evidence;
}

Failure bounded(Failure failure) {
  const auto cut = [](std::string& text, size_t most) {
    text = shorten(printable(shorten(text, most), LineFeeds::keep), most);
  };
  cut(failure.file, most_name_bytes);
  cut(failure.function, most_name_bytes);
  cut(failure.expression, most_name_bytes);
  cut(failure.message, most_message_bytes);
  return failure;
}

}  // namespace unflake
