#pragma once

#include <string>
#include <vector>

#include "scores.h"

namespace unflake::eval {

// Text of others as it can stand in a table's cell; "-" when there is none.
std::string cell(std::string text);
std::string row(const std::vector<std::string>& cells);
std::string table_head(const std::vector<std::string>& cells);

// The table of targets, and which of them were missed.
std::string targets_text(const std::vector<Score>& scores);

// A section reaches from its heading to the next one of the same level. Without such a section
// nothing is found, and a new one comes last.
std::string section_of(const std::string& document, const std::string& heading);
std::string with_section(const std::string& document, const std::string& heading,
                         const std::string& section);

}  // namespace unflake::eval
