#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suite/adapter.h"
#include "suite/ctest_environment.h"

namespace unflake {

// Reads what `ctest --show-only=json-v1` printed. Entries without a command, or whose
// REQUIRED_FILES are missing, are kept as disabled tests with the reason.
Result<std::vector<Test>> parse_ctest_json(std::string_view text, const std::string& target_name,
                                           const EnvLookup& inherited);

// A value of the folder's CMakeCache.txt.
std::optional<std::string> cmake_cache_value(const std::string& folder, std::string_view key);

// The project's name, which is the same on every machine, else the name of the folder.
std::string ctest_target_name(const std::string& folder);

// Whether arguments for a test executable already choose among its cases.
bool selects_cases(Framework framework, const std::vector<std::string>& arguments);

}  // namespace unflake
