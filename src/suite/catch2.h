#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suite/program.h"

namespace unflake {

// Catch2 3: `--list-tests --reporter xml`. None when the output holds no such document.
std::optional<std::vector<ListedCase>> parse_catch2_xml(std::string_view output);

// Catch2 2: `--list-test-names-only --verbosity high`, where each name, however many lines it has,
// is followed by a tab and `@file:line`.
std::vector<ListedCase> parse_catch2_names(std::string_view output);

// Catch2 2: `--list-tags`, where each line counts a tag's tests and shows its spellings.
std::vector<std::string> parse_catch2_tags(std::string_view output);

// A test spec for each of `names`. Catch2 compares names without regard to case and surrounding
// spaces, and a `*` at an end cannot be quoted; other names that match are excluded. None where no
// spec selects the test alone, because two names differ in nothing that Catch2 compares.
std::vector<std::optional<std::string>> catch2_specs(const std::vector<std::string>& names);

}  // namespace unflake
