#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/test.h"
#include "util/result.h"

namespace unflake {

using EnvLookup = std::function<std::optional<std::string>(const std::string& name)>;

// What CTest's ENVIRONMENT and ENVIRONMENT_MODIFICATION do to an environment in which `inherited`
// tells the values.
Result<std::vector<EnvChange>> ctest_environment(const std::vector<std::string>& settings,
                                                 const std::vector<std::string>& modifications,
                                                 const EnvLookup& inherited);

}  // namespace unflake
