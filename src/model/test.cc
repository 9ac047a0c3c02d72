#include "model/test.h"

#include <array>
#include <utility>

namespace unflake {
namespace {

constexpr std::array<std::pair<Framework, std::string_view>, 6> names{{
    {Framework::command, "command"},
    {Framework::gtest, "gtest"},
    {Framework::catch2, "catch2"},
    {Framework::doctest, "doctest"},
    {Framework::boost_test, "boost"},
    {Framework::ctest, "ctest"},
}};

}  // namespace

std::string_view to_string(Framework framework) {
  for (const auto& [value, name] : names)
    if (value == framework) return name;
  return "?";
}

std::optional<Framework> framework_from(std::string_view name) {
  for (const auto& [value, known] : names)
    if (known == name) return value;
  return std::nullopt;
}

std::string to_string(const TestId& id) {
  return id.target + ":" + id.name;
}

}  // namespace unflake
