#pragma once

#include <string>
#include <string_view>

namespace unflake {

// Any text as HTML or SVG shows it, in elements and in quoted attributes: bounded, without control
// characters, nothing in it is markup.
std::string html_text(std::string_view text, size_t most = 500);

}  // namespace unflake
