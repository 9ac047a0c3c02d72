#pragma once

#include <string>
#include <vector>

namespace unflake {

// How a plain command is called in ids: readable, and the same on every machine. Absolute paths
// become relative to the project, or their last part when they are outside of it.
std::string command_name(const std::vector<std::string>& argv, const std::string& project);

}  // namespace unflake
