#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace unflake {

// How many columns printable text takes on a terminal. Independent of the locale: wcwidth() knows
// nothing in a program that has not called setlocale().
size_t columns(std::string_view text);

// Cut to at most `most` columns, with an ellipsis where something was cut.
std::string cut_to_columns(std::string_view text, size_t most);

}  // namespace unflake
