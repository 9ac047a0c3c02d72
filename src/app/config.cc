#include "app/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "util/text.h"

namespace unflake {
namespace {

// Collects values from one TOML table and remembers the first thing that is wrong with it.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string path) : table_(table), path_(std::move(path)) {}

  template <class T>
  void read(const char* key, std::optional<T>& value) {
    known_.push_back(key);
    const toml::node* node = table_.get(key);
    if (!node || error_) return;
    auto converted = convert<T>(*node);
    if (converted)
      value = *converted;
    else
      error_ = usage_error(fmt::format("'{}' {}", key, converted.error().what), where(*node),
                           converted.error().next);
  }

  // Whatever was not read is a mistake: a misspelt key that does nothing is worse than an error.
  std::optional<Error> finish() {
    for (const auto& [key, node] : table_) {
      if (error_) break;
      const std::string name(key.str());
      if (std::ranges::find(known_, name) != known_.end()) continue;
      const auto near = nearest(name, known_, 1);
      error_ =
          usage_error(fmt::format("there is no setting '{}' here", printable(name)), where(node),
                      near.empty() ? fmt::format("known are: {}", join(known_, ", "))
                                   : fmt::format("did you mean '{}'?", near[0]));
    }
    return error_;
  }

  std::string where(const toml::node& node) const {
    return fmt::format("{}, line {}, column {}", path_, node.source().begin.line,
                       node.source().begin.column);
  }

 private:
  template <class T>
  static Result<T> convert(const toml::node& node);

  const toml::table& table_;
  std::string path_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

template <>
Result<std::string> TableReader::convert(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  return usage_error("must be a string");
}

template <>
Result<bool> TableReader::convert(const toml::node& node) {
  if (const auto flag = node.value_exact<bool>()) return *flag;
  return usage_error("must be true or false");
}

Result<int64_t> number_between(const toml::node& node, int64_t least, int64_t most) {
  const auto number = node.value_exact<int64_t>();
  if (number && *number >= least && *number <= most) return *number;
  return usage_error(fmt::format("must be a whole number from {} to {}", least, most));
}

template <>
Result<int> TableReader::convert(const toml::node& node) {
  const auto number = number_between(node, 0, 1'000'000);
  if (!number) return number.error();
  return static_cast<int>(*number);
}

template <>
Result<size_t> TableReader::convert(const toml::node& node) {
  const auto number = number_between(node, 1, 1024);
  if (!number) return number.error();
  return static_cast<size_t>(*number);
}

template <>
Result<Duration> TableReader::convert(const toml::node& node) {
  const auto text = node.value_exact<std::string>();
  if (!text) return usage_error("must be a duration in quotes", "", "write \"30s\" or \"5m\"");
  return parse_duration(*text);
}

template <>
Result<FlakyResult> TableReader::convert(const toml::node& node) {
  const auto text = node.value_exact<std::string>();
  if (const auto result = text ? flaky_result_from(*text) : std::nullopt) return *result;
  return usage_error("must be \"tell\", \"pass\" or \"fail\"");
}

template <>
Result<std::vector<std::string>> TableReader::convert(const toml::node& node) {
  std::vector<std::string> texts;
  const toml::array* list = node.as_array();
  if (!list) return usage_error("must be a list", "", "write [\"one\", \"two\"]");
  for (const toml::node& element : *list) {
    const auto text = element.value_exact<std::string>();
    if (!text) return usage_error("must be a list of strings", "", "write [\"one\", \"two\"]");
    texts.push_back(*text);
  }
  return texts;
}

template <class T>
void fill(std::optional<T>& value, const std::optional<T>& inherited) {
  if (!value) value = inherited;
}

void inherit(Settings& settings, const Settings& from) {
  fill(settings.jobs, from.jobs);
  fill(settings.retries, from.retries);
  fill(settings.timeout, from.timeout);
  fill(settings.grace, from.grace);
  fill(settings.flaky, from.flaky);
  fill(settings.target, from.target);
  fill(settings.fork_server, from.fork_server);
  fill(settings.crash_places, from.crash_places);
  fill(settings.slow_after, from.slow_after);
}

void read_code(TableReader& reader, CodeSettings& code) {
  std::optional<std::vector<std::string>> project, system, functions, wrappers;
  reader.read("project", project);
  reader.read("system", system);
  reader.read("functions", functions);
  reader.read("wrappers", wrappers);
  code.project = std::move(project).value_or(std::vector<std::string>{});
  code.system = std::move(system).value_or(std::vector<std::string>{});
  code.functions = std::move(functions).value_or(std::vector<std::string>{});
  code.wrappers = std::move(wrappers).value_or(std::vector<std::string>{});
}

void read_history(TableReader& reader, HistorySettings& history) {
  reader.read("store", history.store);
  reader.read("project", history.project);
  reader.read("keep_trials", history.retention.trials);
  reader.read("most_trials", history.retention.most_trials);
  reader.read("keep_passing_runs", history.retention.passing_runs);
  reader.read("keep_failing_runs", history.retention.failing_runs);
  reader.read("keep_outputs", history.retention.outputs);
}

void read_ci(TableReader& reader, CiSettings& ci) {
  reader.read("retries", ci.retries);
  reader.read("flaky", ci.flaky);
  reader.read("mass_failure_tests", ci.mass_failure_tests);
  reader.read("mass_failure_percent", ci.mass_failure_percent);
  reader.read("changed_runs", ci.changed_runs);
  reader.read("quarantine_days", ci.quarantine_days);
  reader.read("warn_days", ci.warn_days);
  reader.read("lift_runs", ci.lift_runs);
}

class ConfigReader {
 public:
  ConfigReader(const toml::table& root, std::string path) : root_(root), path_(std::move(path)) {}

  Result<Config> read(const std::string& profile) {
    TableReader top(root_, path_);
    for (const auto& [key, node] : root_)
      if (key != "profile" && key != "override" && key != "code" && key != "history" && key != "ci")
        return usage_error(fmt::format("there is no setting '{}' here", printable(key.str())),
                           top.where(node),
                           "use [profile.default], [[override]], [code], [history] and [ci]");
    const toml::node* profiles = root_.get("profile");
    if (profiles && !profiles->is_table())
      return usage_error("write profiles as [profile.NAME]", top.where(*profiles));
    Config config;
    auto settings = read_profile(profile, {});
    if (!settings) return settings.error();
    config.settings = *settings;
    auto overrides = read_overrides();
    if (!overrides) return overrides.error();
    config.overrides = std::move(*overrides);
    auto code = read_section("code", read_code);
    if (!code) return code.error();
    config.code = std::move(*code);
    auto history = read_section("history", read_history);
    if (!history) return history.error();
    config.history = std::move(*history);
    auto ci = read_section("ci", read_ci);
    if (!ci) return ci.error();
    config.ci = *ci;
    return config;
  }

 private:
  Result<Settings> read_profile(const std::string& name, std::set<std::string> visited) {
    const toml::node* node = root_["profile"][name].node();
    if (!node) {
      if (name == "default") return Settings{};
      return usage_error(fmt::format("there is no profile '{}'", printable(name)), path_,
                         fmt::format("add [profile.{}] or choose another --profile", name));
    }
    const toml::table* table = node->as_table();
    if (!table)
      return usage_error("a profile must be a table", TableReader(root_, path_).where(*node));
    if (!visited.insert(name).second)
      return usage_error(fmt::format("profile '{}' inherits from itself", printable(name)), path_);

    Settings settings;
    TableReader reader(*table, path_);
    std::optional<std::string> parent;
    reader.read("inherits", parent);
    reader.read("jobs", settings.jobs);
    reader.read("retries", settings.retries);
    reader.read("timeout", settings.timeout);
    reader.read("grace", settings.grace);
    reader.read("flaky", settings.flaky);
    reader.read("target", settings.target);
    reader.read("fork_server", settings.fork_server);
    reader.read("crash_places", settings.crash_places);
    reader.read("slow_after", settings.slow_after);
    if (auto error = reader.finish()) return *error;
    if (!parent && name != "default") parent = "default";
    if (!parent) return settings;
    auto inherited = read_profile(*parent, std::move(visited));
    if (!inherited) return inherited.error();
    inherit(settings, *inherited);
    return settings;
  }

  // A section that is missing sets nothing.
  template <class Section>
  Result<Section> read_section(const char* name, void (*read)(TableReader&, Section&)) {
    Section section;
    const toml::node* node = root_.get(name);
    if (!node) return section;
    const toml::table* table = node->as_table();
    if (!table)
      return usage_error(fmt::format("write it as [{}]", name),
                         TableReader(root_, path_).where(*node));
    TableReader reader(*table, path_);
    read(reader, section);
    if (auto error = reader.finish()) return *error;
    return section;
  }

  Result<std::vector<Override>> read_overrides() {
    std::vector<Override> overrides;
    const toml::node* node = root_.get("override");
    if (!node) return overrides;
    const toml::array* list = node->as_array();
    const TableReader top(root_, path_);
    if (!list) return usage_error("write overrides as [[override]]", top.where(*node));
    for (const toml::node& element : *list) {
      const toml::table* table = element.as_table();
      if (!table) return usage_error("write overrides as [[override]]", top.where(element));
      auto one = read_override(*table);
      if (!one) return one.error();
      overrides.push_back(std::move(*one));
    }
    return overrides;
  }

  Result<Override> read_override(const toml::table& table) {
    Override one;
    TableReader reader(table, path_);
    std::optional<std::string> test;
    reader.read("test", test);
    reader.read("retries", one.retries);
    reader.read("timeout", one.timeout);
    reader.read("serial", one.serial);
    reader.read("fork_server", one.fork_server);
    reader.read("may_exit", one.may_exit);
    if (auto error = reader.finish()) return *error;
    if (!test)
      return usage_error("an override does not say which test it is for", reader.where(table),
                         "add: test = \"target:name\" (* and ? may stand for anything)");
    one.test = std::move(*test);
    return one;
  }

  const toml::table& root_;
  std::string path_;
};

}  // namespace

std::optional<FlakyResult> flaky_result_from(std::string_view name) {
  if (name == "tell") return FlakyResult::tell;
  if (name == "pass") return FlakyResult::pass;
  if (name == "fail") return FlakyResult::fail;
  return std::nullopt;
}

Result<Config> parse_config(std::string_view text, const std::string& path,
                            const std::string& profile) {
  try {
    const toml::table root = toml::parse(text, path);
    return ConfigReader(root, path).read(profile);
  } catch (const toml::parse_error& error) {
    const auto& at = error.source().begin;
    return usage_error(fmt::format("not valid TOML: {}", printable(error.description())),
                       fmt::format("{}, line {}, column {}", path, at.line, at.column),
                       "fix the file or choose another with --config");
  }
}

Result<Config> load_config(const std::string& path, const std::string& profile,
                           bool may_be_missing) {
  std::ifstream file(path);
  if (!file) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    if (missing && may_be_missing) return parse_config("", path, profile);
    return usage_error(fmt::format("the configuration cannot be read: {}", std::strerror(errno)),
                       path, "choose another file with --config");
  }
  std::ostringstream text;
  text << file.rdbuf();
  return parse_config(text.str(), path, profile);
}

}  // namespace unflake
