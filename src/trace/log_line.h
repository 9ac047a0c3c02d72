#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unflake {

// Whether a line was printed by a logger (time stamp, level, bracketed source) and not by an author
// who explains an assertion.
bool looks_like_log(std::string_view line);

// The line of a program's output that says best why it failed; empty when there is none.
std::string_view most_telling_line(const std::vector<std::string>& texts);

}  // namespace unflake
