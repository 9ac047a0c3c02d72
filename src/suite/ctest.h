#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
#include "suite/adapter.h"
#include "util/result.h"

namespace unflake {

using EnvLookup = std::function<std::optional<std::string>(const std::string& name)>;

// What CTest's ENVIRONMENT and ENVIRONMENT_MODIFICATION do to an environment in which `inherited`
// has the values.
Result<std::vector<EnvChange>> ctest_environment(const std::vector<std::string>& settings,
                                                 const std::vector<std::string>& modifications,
                                                 const EnvLookup& inherited);

// Reads what `ctest --show-only=json-v1` printed. An entry whose program CTest did not find has no
// command.
Result<std::vector<Test>> parse_ctest_json(std::string_view text, const std::string& target_name,
                                           const EnvLookup& inherited);

// The programs that CTest did not find, by entry, as `ctest -N -V` lists them.
std::map<std::string, std::string> parse_missing_programs(std::string_view text);

// Why an entry without a command cannot be started, and what to do. The program is empty when it is
// not known.
std::string missing_program(const std::string& entry, const std::string& program,
                            const std::string& build_folder, const std::string& configuration);

// A value of the folder's CMakeCache.txt.
std::optional<std::string> cmake_cache_value(const std::string& folder, std::string_view key);

// The project's name, which is the same on every machine, else the name of the folder.
std::string ctest_target_name(const std::string& folder);

// Whether arguments for a test executable already choose among its cases.
bool selects_cases(Framework framework, const std::vector<std::string>& arguments);

}  // namespace unflake
