#pragma once

#include <string>
#include <string_view>

namespace unflake {

// PostgreSQL's text holds valid UTF-8 without NUL; the names of tests may be any bytes. What it
// cannot hold becomes the control character SUB and two hexadecimal digits, and so does SUB itself:
// every text comes back as it was, and ordinary ones look the same in psql.
std::string to_stored_text(std::string_view text);
std::string from_stored_text(std::string_view stored);

}  // namespace unflake
