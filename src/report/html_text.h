#pragma once

#include <string>
#include <string_view>

namespace unflake {

// Any text as HTML or SVG shows it, in elements and in quoted attributes: bounded, without control
// characters, nothing in it is markup.
std::string html_text(std::string_view text, size_t most = 500);

// The same of a sentence: what stands between backticks is shown as code.
std::string html_prose(std::string_view text, size_t most = 500);

// The same of what stands in a column of a table: a name or a path may go on in the next line
// behind a mark, so that a narrow column does not cut words, and a number keeps its unit.
std::string html_cell(std::string_view text, size_t most = 500);

}  // namespace unflake
