#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/store.h"

namespace unflake {

// Which runs a history holds, by the second of their start, and how often.
std::map<int64_t, int> recorded_seconds(const std::string& path,
                                        const std::vector<std::string>& names);

std::string integrity(const std::string& path);  // "ok" when SQLite finds nothing wrong

std::string bytes_of(const std::string& path);

}  // namespace unflake
