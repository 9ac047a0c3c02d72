#pragma once

#include <cstdlib>
#include <string>

namespace unflake {

// Empty when the variable is not set.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace unflake
