#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suite/program.h"

namespace unflake {

// `--list-test-cases --reporters=xml`. None when the output holds no complete document.
std::optional<std::vector<ListedCase>> parse_doctest_xml(std::string_view output);

// For each case the arguments that select it alone; `cases` are in the order of the source files,
// as doctest lists and runs them. Filters are globs, and doctest permits two cases of the same
// name: what still matches more than one is singled out by its position.
std::vector<std::vector<std::string>> doctest_selections(const std::vector<ListedCase>& cases);

}  // namespace unflake
