#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "suite/frameworks.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

constexpr int known_major = 1;

const Json& member(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string as_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

std::vector<std::string> as_list(const Json& value) {
  std::vector<std::string> list;
  if (value.is_string()) list.push_back(value.get<std::string>());
  if (!value.is_array()) return list;
  for (const Json& item : value)
    if (item.is_string()) list.push_back(item.get<std::string>());
  return list;
}

bool as_bool(const Json& value) {
  return value.is_boolean() && value.get<bool>();
}

std::optional<double> as_number(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

std::optional<int> as_int(const Json& value) {
  const auto number = as_number(value);
  if (!number || *number < -2e9 || *number > 2e9) return std::nullopt;
  return static_cast<int>(*number);
}

// CTest writes the properties as a list of name and value.
class Properties {
 public:
  explicit Properties(const Json& entry) : list_(member(entry, "properties")) {}

  const Json& operator[](std::string_view name) const {
    static const Json nothing;
    if (!list_.is_array()) return nothing;
    for (const Json& property : list_)
      if (as_text(member(property, "name")) == name) return member(property, "value");
    return nothing;
  }

 private:
  const Json& list_;
};

struct Place {
  std::string file;
  int line = 0;
};

// The outermost call that led to add_test(): the line that the project's own CMakeLists.txt has
// for this test, and not the helper function that it went through.
Place place_of(const Json& graph, const Json& start) {
  const Json& nodes = member(graph, "nodes");
  const Json& files = member(graph, "files");
  Place place;
  if (!nodes.is_array() || !files.is_array()) return place;
  auto index = as_int(start);
  for (size_t steps = 0; index && *index >= 0 && steps < nodes.size(); ++steps) {
    if (static_cast<size_t>(*index) >= nodes.size()) break;
    const Json& node = nodes[static_cast<size_t>(*index)];
    const auto file = as_int(member(node, "file"));
    const auto line = as_int(member(node, "line"));
    if (line && file && *file >= 0 && static_cast<size_t>(*file) < files.size())
      place = {as_text(files[static_cast<size_t>(*file)]), *line};
    index = as_int(member(node, "parent"));
  }
  return place;
}

// DEF_SOURCE_LINE, set by newer discovery modules: "file:line" of the test itself.
std::optional<Place> source_line(const Json& value) {
  const std::string text = as_text(value);
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  Place place{text.substr(0, colon), 0};
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), place.line);
  return place.line > 0 ? std::optional(place) : std::nullopt;
}

void read_scheduling(Test& test, const Properties& properties) {
  test.serial = as_bool(properties["RUN_SERIAL"]);
  test.locks = as_list(properties["RESOURCE_LOCK"]);
  test.processors = std::clamp(as_int(properties["PROCESSORS"]).value_or(1), 1, 1 << 16);
  test.depends = as_list(properties["DEPENDS"]);
  test.labels = as_list(properties["LABELS"]);
  test.fixtures = {as_list(properties["FIXTURES_REQUIRED"]), as_list(properties["FIXTURES_SETUP"]),
                   as_list(properties["FIXTURES_CLEANUP"])};
  const auto seconds = as_number(properties["TIMEOUT"]);
  if (seconds && *seconds > 0 && *seconds < 1e9)
    test.timeout = Duration(static_cast<Duration::rep>(*seconds * 1e6));
}

void read_rule(Test& test, const Properties& properties) {
  test.rule.will_fail = as_bool(properties["WILL_FAIL"]);
  test.rule.skip_return_code = as_int(properties["SKIP_RETURN_CODE"]);
  test.rule.pass_patterns = as_list(properties["PASS_REGULAR_EXPRESSION"]);
  test.rule.fail_patterns = as_list(properties["FAIL_REGULAR_EXPRESSION"]);
  test.rule.skip_patterns = as_list(properties["SKIP_REGULAR_EXPRESSION"]);
}

void read_environment(Test& test, const Properties& properties, const EnvLookup& inherited) {
  auto changes = ctest_environment(as_list(properties["ENVIRONMENT"]),
                                   as_list(properties["ENVIRONMENT_MODIFICATION"]), inherited);
  if (changes)
    test.command.env = std::move(*changes);
  else
    test.obstacle = changes.error().what;
}

void read_conditions(Test& test, const Properties& properties) {
  test.disabled = as_bool(properties["DISABLED"]);
  if (test.disabled) test.disabled_reason = "DISABLED in its CMakeLists.txt";
  for (const std::string& file : as_list(properties["REQUIRED_FILES"])) {
    const bool absolute = file.starts_with('/') || test.command.cwd.empty();
    test.required_files.push_back(absolute ? file : test.command.cwd + "/" + file);
  }
}

Test read_entry(const Json& entry, const Json& graph, const std::string& target_name,
                const EnvLookup& inherited) {
  const Properties properties(entry);
  Test test;
  test.id = {target_name, as_text(member(entry, "name"))};
  test.framework = Framework::ctest;
  test.is_entry = true;
  test.command.argv = as_list(member(entry, "command"));
  if (test.command.argv == std::vector<std::string>{"NOT_AVAILABLE"}) test.command.argv.clear();
  test.command.cwd = as_text(properties["WORKING_DIRECTORY"]);
  const Place place = source_line(properties["DEF_SOURCE_LINE"])
                          .value_or(place_of(graph, member(entry, "backtrace")));
  test.file = place.file;
  test.line = place.line;
  read_environment(test, properties, inherited);
  read_scheduling(test, properties);
  read_rule(test, properties);
  read_conditions(test, properties);
  return test;
}

Result<void> check_version(const Json& document) {
  const auto major = as_int(member(member(document, "version"), "major"));
  if (as_text(member(document, "kind")) != "ctestInfo" || !major)
    return usage_error("ctest printed JSON that is not a list of tests");
  if (*major == known_major) return {};
  return usage_error(fmt::format("ctest lists tests in version {} of its format, unflake reads "
                                 "version {}",
                                 *major, known_major),
                     "", "use the ctest of another CMake release, or update unflake");
}

}  // namespace

Result<std::vector<Test>> parse_ctest_json(std::string_view text, const std::string& target_name,
                                           const EnvLookup& inherited) {
  const size_t start = text.find('{');
  if (start == std::string_view::npos) return usage_error("ctest printed no JSON");
  const Json document = parse_json(text.substr(start));
  if (!document.is_object()) return usage_error("ctest printed JSON that cannot be read");
  if (const auto right = check_version(document); !right) return right.error();
  const Json& entries = member(document, "tests");
  if (!entries.is_array()) return usage_error("ctest printed JSON without a list of tests");
  std::vector<Test> tests;
  for (const Json& entry : entries)
    tests.push_back(read_entry(entry, member(document, "backtraceGraph"), target_name, inherited));
  return tests;
}

}  // namespace unflake
