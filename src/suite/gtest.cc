#include "suite/gtest.h"

#include "suite/adapter.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

constexpr std::string_view filter_characters = ":-*?";

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int>() : 0;
}

const Json& array_at(const Json& object, const char* key) {
  static const Json empty = Json::array();
  if (!object.is_object()) return empty;
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : empty;
}

// The part of the output that is the report: from its first key to the brace in the first column.
std::optional<Json> report_in(std::string_view output) {
  const size_t start = output.find("{\n  \"tests\"");
  if (start == std::string_view::npos) return std::nullopt;
  output.remove_prefix(start);
  const size_t end = output.find("\n}");
  if (end == std::string_view::npos) return std::nullopt;
  Json report = parse_json(output.substr(0, end + 2));
  if (!report.is_object() || !report.contains("testsuites")) return std::nullopt;
  return report;
}

std::string_view without_comment(std::string_view line) {
  line = line.substr(0, line.find("  # "));
  return line;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t") == std::string_view::npos;
}

std::string with_wildcards(std::string_view name) {
  std::string pattern(name);
  for (char& c : pattern)
    if (filter_characters.find(c) != std::string_view::npos) c = '?';
  return pattern;
}

bool is_plain(std::string_view name) {
  return name.find_first_of(filter_characters) == std::string_view::npos;
}

bool is_disabled(const ListedCase& listed) {
  return listed.suite.starts_with("DISABLED_") ||
         listed.suite.find("/DISABLED_") != std::string::npos ||
         listed.name.starts_with("DISABLED_");
}

std::vector<std::string> full_names(const std::vector<ListedCase>& cases) {
  std::vector<std::string> names;
  for (const ListedCase& listed : cases) names.push_back(listed.suite + "." + listed.name);
  return names;
}

const std::string* also_selected(const std::vector<std::string>& names, size_t wanted,
                                 const std::string& filter) {
  if (is_plain(names[wanted])) return nullptr;
  for (size_t i = 0; i < names.size(); ++i)
    if (i != wanted && gtest_filter_selects(filter, names[i])) return &names[i];
  return nullptr;
}

Test to_test(const Target& target, const std::vector<ListedCase>& cases,
             const std::vector<std::string>& names, size_t index) {
  const std::string filter = gtest_filter(names, index);
  std::vector<std::string> selection{"--gtest_filter=" + filter, "--gtest_color=no"};
  if (cases[index].disabled) selection.push_back("--gtest_also_run_disabled_tests");
  Test test = make_test(target, cases[index], names[index], std::move(selection));
  if (test.disabled) test.disabled_reason = "its name begins with DISABLED_";
  if (const std::string* other = also_selected(names, index, filter))
    mark_inseparable(test, *other);
  return test;
}

class GtestAdapter : public Adapter {
 public:
  Result<std::vector<Test>> list(const Target& target, const ListOptions& options,
                                 Launcher& launcher) const override {
    // The report follows the listing on the same stream, and adds where each test is defined.
    const Command command = target_command(
        target, {"--gtest_list_tests", "--gtest_output=json:/dev/stdout", "--gtest_color=no"});
    const auto answer = ask(command, options, launcher);
    if (!answer) return answer.error();
    const std::string output = answer->output.text();
    auto cases = parse_gtest_json(output);
    if (!cases) {
      if (answer->code != 0)
        return listing_error(command, *answer, "failed while listing its tests");
      cases = parse_gtest_text(output);
      if (cases->empty()) return listing_error(command, *answer, "printed no GoogleTest listing");
    }
    const std::vector<std::string> names = full_names(*cases);
    std::vector<Test> tests;
    for (size_t i = 0; i < cases->size(); ++i) tests.push_back(to_test(target, *cases, names, i));
    make_ids_unique(tests);
    return tests;
  }
};

}  // namespace

std::optional<std::vector<ListedCase>> parse_gtest_json(std::string_view output) {
  const auto report = report_in(output);
  if (!report) return std::nullopt;
  std::vector<ListedCase> cases;
  for (const Json& suite : array_at(*report, "testsuites")) {
    for (const Json& test : array_at(suite, "testsuite")) {
      if (!test.is_object()) return std::nullopt;
      ListedCase listed{text_at(suite, "name"),
                        text_at(test, "name"),
                        text_at(test, "file"),
                        number_at(test, "line"),
                        false,
                        {}};
      listed.disabled = is_disabled(listed);
      cases.push_back(std::move(listed));
    }
  }
  return cases;
}

std::vector<ListedCase> parse_gtest_text(std::string_view output) {
  std::vector<ListedCase> cases;
  std::string suite;
  for (const std::string_view line : split_lines(output)) {
    const std::string_view text = without_comment(line);
    if (!text.starts_with(' ')) {
      const bool opens_suite = text.ends_with('.') && is_name(text);
      suite = opens_suite ? text.substr(0, text.size() - 1) : "";
    } else if (!suite.empty() && text.starts_with("  ") && is_name(text.substr(2))) {
      ListedCase listed{suite, std::string(text.substr(2)), "", 0, false, {}};
      listed.disabled = is_disabled(listed);
      cases.push_back(std::move(listed));
    }
  }
  return cases;
}

std::string gtest_filter(const std::vector<std::string>& names, size_t wanted) {
  const std::string pattern = with_wildcards(names[wanted]);
  if (is_plain(names[wanted])) return pattern;
  std::string excluded;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == wanted || !glob_match(pattern, names[i])) continue;
    const std::string other = with_wildcards(names[i]);
    if (!glob_match(other, names[wanted])) excluded += (excluded.empty() ? "-" : ":") + other;
  }
  return pattern + excluded;
}

bool gtest_filter_selects(std::string_view filter, std::string_view name) {
  const size_t dash = filter.find('-');
  const auto any = [&](std::string_view patterns) {
    for (const std::string& pattern : split(patterns, ':'))
      if (glob_match(pattern, name)) return true;
    return false;
  };
  if (!any(filter.substr(0, dash))) return false;
  return dash == std::string_view::npos || !any(filter.substr(dash + 1));
}

const Adapter& gtest_adapter() {
  static const GtestAdapter adapter;
  return adapter;
}

}  // namespace unflake
