#pragma once

#include <string>
#include <string_view>
#include <vector>
#include "model/process_result.h"

namespace unflake {

// A stretch of output with nothing missing inside. Where the middle of a stream was dropped there
// are two, and they are never joined: a line that spans the gap was never printed.
struct TextPiece {
  std::string text;
  bool cut_at_start = false;
  bool cut_at_end = false;
};

std::vector<TextPiece> pieces_of(const ProcessResult& process);

// Only whole lines, without colours.
std::string readable_lines(const TextPiece& piece);

// Whether a line was printed by a logger (time stamp, level, bracketed source) and not by an author
// who explains an assertion.
bool looks_like_log(std::string_view line);

// The line of a program's output that says best why it failed; empty when there is none.
std::string_view most_telling_line(const std::vector<std::string>& texts);

}  // namespace unflake
