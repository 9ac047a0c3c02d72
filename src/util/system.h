#pragma once

#include <cstdlib>
#include <string>

namespace unflake {

// "SIGSEGV"; "signal 64" where the number has no name.
std::string signal_name(int number);

// Empty when the variable is not set.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace unflake
