#include "trace/assertion_reporters.h"

#include <algorithm>
#include <array>

namespace unflake {
namespace {

using protocol::any_bit;
using protocol::argument_itself;

constexpr uint8_t bits(auto... values) {
  return static_cast<uint8_t>(((1 << values) | ...));
}

struct Reporter {
  std::string_view mangled;  // its name up to the parameters
  protocol::FailureSign sign{0, argument_itself, 0};
};

constexpr uint8_t catch_failure_bit = 0x10;          // in Catch::ResultWas::OfType
constexpr uint8_t doctest_check_or_require = 2 | 4;  // of doctest::assertType
constexpr uint8_t doctest_severity = 36;             // in doctest::MessageData
constexpr uint8_t doctest_failed = 40;               // in doctest::AssertData, a bool

constexpr Reporter reporters[] = {
    {"_ZN7testing8UnitTest17AddTestPartResultE", {2, argument_itself, bits(1, 2)}},

    {"_ZN5Catch10RunContext10reportExprE", {3 | any_bit, argument_itself, catch_failure_bit}},
    {"_ZN5Catch10RunContext13handleMessageE", {3 | any_bit, argument_itself, catch_failure_bit}},
    {"_ZN5Catch10RunContext13handleNonExprE", {3 | any_bit, argument_itself, catch_failure_bit}},
    {"_ZN5Catch10RunContext34handleUnexpectedExceptionNotThrownE"},
    {"_ZN5Catch10RunContext33handleUnexpectedInflightExceptionE"},

    {"_ZN7doctest12_GLOBAL__N_115ConsoleReporter10log_assertE", {2, doctest_failed, bits(1)}},
    {"_ZN7doctest12_GLOBAL__N_115ConsoleReporter19test_case_exceptionE"},
    {"_ZN7doctest12_GLOBAL__N_115ConsoleReporter11log_messageE",
     {2 | any_bit, doctest_severity, doctest_check_or_require}},

    {"_ZN5boost9unit_test19results_collector_t16assertion_resultE", {2, argument_itself, bits(0)}},
    {"_ZN5boost9unit_test19results_collector_t16exception_caughtE"},
};

// What a compiler split off from a function does not begin with its entry.
bool is_split_off(const Function& function) {
  return function.mangled.find('.') != std::string::npos;
}

}  // namespace

std::vector<AssertionReporter> assertion_reporters(const Image& image) {
  std::vector<AssertionReporter> found;
  for (const Function& function : image.functions())
    for (const Reporter& reporter : reporters)
      if (function.mangled.starts_with(reporter.mangled) && !is_split_off(function))
        found.push_back({function, reporter.sign});
  return found;
}

bool is_framework_library(std::string_view file_name) {
  constexpr std::array prefixes{"libgtest.", "libCatch2.", "libdoctest.",
                                "libboost_unit_test_framework."};
  return std::ranges::any_of(
      prefixes, [&](std::string_view prefix) { return file_name.starts_with(prefix); });
}

}  // namespace unflake
