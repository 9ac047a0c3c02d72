#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "util/process_result.h"

namespace unflake {

// The end of a run's output, where failures usually explain themselves: safe to print, bounded.
struct Excerpt {
  std::vector<std::string> lines;
  uint64_t left_out = 0;  // lines before these
};

Excerpt last_lines(const ProcessResult& process, size_t most);

// All that is kept of a run's output, standard error behind standard output; any bytes.
std::string whole_output(const ProcessResult& process);

// The first quarter and the last three of at most `most` bytes, with a line that says how much is
// missing in between: the end is where tests say why they failed.
std::string cut_middle(std::string text, size_t most);

// A run's output cut in this way and without colours: valid UTF-8 without control characters but
// line feed and tab.
std::string printable_output(const ProcessResult& process, size_t most);

// Any other text of a test, made safe in the same way and cut at its end.
std::string bounded_text(std::string_view text, size_t most);

}  // namespace unflake
