#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unflake {

// The libraries that the loader would load for a program, by their real paths, as far as they are
// found in the places where it looks: the program's own run paths, `library_path` (as
// LD_LIBRARY_PATH has it) and the system's folders.
std::vector<std::string> needed_libraries(const std::string& program,
                                          std::string_view library_path);

}  // namespace unflake
