#pragma once

#include <string>
#include <string_view>

namespace unflake {

// Any text where GitHub's and GitLab's Markdown shows it as it is: one line, in a code span, so
// that it has no markup, mentions nobody, links nothing and does not break the table it may stand
// in.
std::string markdown_code(std::string_view text, size_t most = 200);

// Several lines of it, in a block of their own.
std::string markdown_block(std::string_view text, size_t most = 4000);

}  // namespace unflake
