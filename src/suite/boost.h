#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suite/program.h"

namespace unflake {

// What the adapter adds, as the last word, to have each beginning and end of a case logged.
inline constexpr std::string_view boost_progress_log = "--log_level=test_suite";

// `--list_content=DOT`: the tree of suites and cases, with places and labels. The `suite` of a case
// is its path. None when the text holds no complete graph.
std::optional<std::vector<ListedCase>> parse_boost_graph(std::string_view output);

// The path for `--run_test`. Characters that the filter language reserves end a component
// early with `*`: it knows wildcards at the ends of a component and no quoting.
std::string boost_filter(std::string_view path);

}  // namespace unflake
