#include "trace/assertion_reporters.h"

#include <algorithm>
#include <array>

#include "symbols/lookup.h"

namespace unflake {
namespace {

// Per framework, the best one first: a compiler may have inlined it. Boost.Test has none: its
// reporters are called for every check.
constexpr std::array<std::array<std::string_view, 2>, 3> names{{
    {"testing::internal::AssertHelper::operator=", ""},
    {"Catch::RunContext::populateReaction", "Catch::RunContext::reportExpr"},
    {"doctest::(anonymous namespace)::addFailedAssert", "doctest::detail::throwException"},
}};

// What a compiler split off from a function does not begin with its entry.
bool is_split_off(const Function& function) {
  return function.mangled.find(".cold") != std::string::npos ||
         function.mangled.find(".part.") != std::string::npos;
}

std::vector<Function> functions_named(const Image& image, std::string_view name) {
  std::vector<Function> found;
  for (const Function* function : find_functions(image, name).functions)
    if (!is_split_off(*function)) found.push_back(*function);
  return found;
}

}  // namespace

std::vector<Function> assertion_reporters(const Image& image) {
  std::vector<Function> all;
  for (const auto& alternatives : names)
    for (const std::string_view name : alternatives) {
      const auto found = name.empty() ? std::vector<Function>() : functions_named(image, name);
      all.insert(all.end(), found.begin(), found.end());
      if (!found.empty()) break;
    }
  std::ranges::sort(all, {}, &Function::start);
  return all;
}

bool is_framework_library(std::string_view file_name) {
  constexpr std::array prefixes{"libgtest.", "libCatch2.", "libdoctest."};
  return std::ranges::any_of(
      prefixes, [&](std::string_view prefix) { return file_name.starts_with(prefix); });
}

}  // namespace unflake
