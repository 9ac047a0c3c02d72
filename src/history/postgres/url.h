#pragma once

#include <string>

namespace unflake {

// As it may be shown: without passwords, wherever in the url they stand.
std::string url_without_passwords(const std::string& url);

}  // namespace unflake
