#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "suite/program.h"

namespace unflake {

// The report that GoogleTest adds to a listing when asked for JSON on standard output; none when
// there is no complete one in the text.
std::optional<std::vector<ListedCase>> parse_gtest_json(std::string_view output);

// The listing for people, the only one before GoogleTest 1.8.1. Lines of the program's own main()
// are left out where they can be told apart: names have no spaces.
std::vector<ListedCase> parse_gtest_text(std::string_view output);

// Filters for `names[wanted]`. The filter language cannot quote: the characters that it
// reserves become `?`, and other tests that this would select too are excluded by name.
std::string gtest_filter(const std::vector<std::string>& names, size_t wanted);

// Whether GoogleTest would run `name` under a filter.
bool gtest_filter_selects(std::string_view filter, std::string_view name);

}  // namespace unflake
