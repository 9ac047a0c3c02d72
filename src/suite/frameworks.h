#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
#include "suite/adapter.h"
#include "suite/program.h"
#include "util/result.h"

// How each framework lists its tests and selects one of them.

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

// `--list-test-cases --reporters=xml`. None when the output holds no complete document.
std::optional<std::vector<ListedCase>> parse_doctest_xml(std::string_view output);

// For each case the arguments that select it alone; `cases` are in the order of the source files,
// as doctest lists and runs them. Filters are globs, and doctest permits two cases of the same
// name: what still matches more than one is singled out by its position.
std::vector<std::vector<std::string>> doctest_selections(const std::vector<ListedCase>& cases);

// What the adapter adds, as the last word, to have each beginning and end of a case logged.
inline constexpr std::string_view boost_progress_log = "--log_level=test_suite";

// `--list_content=DOT`: the tree of suites and cases, with places and labels. The `suite` of a case
// is its path. None when the text holds no complete graph.
std::optional<std::vector<ListedCase>> parse_boost_graph(std::string_view output);

// The path for `--run_test`. Characters that the filter language reserves end a component
// early with `*`: it knows wildcards at the ends of a component and no quoting.
std::string boost_filter(std::string_view path);

using EnvLookup = std::function<std::optional<std::string>(const std::string& name)>;

// What CTest's ENVIRONMENT and ENVIRONMENT_MODIFICATION do to an environment in which `inherited`
// has the values.
Result<std::vector<EnvChange>> ctest_environment(const std::vector<std::string>& settings,
                                                 const std::vector<std::string>& modifications,
                                                 const EnvLookup& inherited);

// Reads what `ctest --show-only=json-v1` printed. An entry whose program CTest did not find has no
// command.
Result<std::vector<Test>> parse_ctest_json(std::string_view text, const std::string& target_name,
                                           const EnvLookup& inherited);

// The programs that CTest did not find, by entry, as `ctest -N -V` lists them.
std::map<std::string, std::string> parse_missing_programs(std::string_view text);

// Why an entry without a command cannot be started, and what to do. The program is empty when it is
// not known.
std::string missing_program(const std::string& entry, const std::string& program,
                            const std::string& build_folder, const std::string& configuration);

// A value of the folder's CMakeCache.txt.
std::optional<std::string> cmake_cache_value(const std::string& folder, std::string_view key);

// The project's name, which is the same on every machine, else the name of the folder.
std::string ctest_target_name(const std::string& folder);

// Whether arguments for a test executable already choose among its cases.
bool selects_cases(Framework framework, const std::vector<std::string>& arguments);

}  // namespace unflake
