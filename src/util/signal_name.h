#pragma once

#include <string>

namespace unflake {

// "SIGSEGV"; "signal 64" where the number has no name.
std::string signal_name(int number);

}  // namespace unflake
