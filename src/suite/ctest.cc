#include "suite/frameworks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "suite/adapter.h"
#include "suite/program.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

using Value = std::optional<std::string>;

struct Modification {
  std::string name;
  std::string operation;
  std::string value;
};

std::optional<Modification> parse(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  const size_t colon = text.find(':', equals);
  if (colon == std::string::npos) return std::nullopt;
  return Modification{text.substr(0, equals), text.substr(equals + 1, colon - equals - 1),
                      text.substr(colon + 1)};
}

// The separator that a list operation puts between two values; none for an unknown operation.
std::optional<std::string> separator_of(std::string_view operation) {
  if (operation.starts_with("string_")) return "";
  if (operation.starts_with("path_list_")) return ":";
  if (operation.starts_with("cmake_list_")) return ";";
  return std::nullopt;
}

// The new value of a variable; no result when the operation is unknown.
std::optional<Value> apply(const Modification& change, const Value& before, const Value& original) {
  if (change.operation == "set") return Value(change.value);
  if (change.operation == "unset") return Value(std::nullopt);
  if (change.operation == "reset") return original;
  const auto separator = separator_of(change.operation);
  if (!separator) return std::nullopt;
  const std::string old = before.value_or("");
  const std::string between = old.empty() ? "" : *separator;
  if (change.operation.ends_with("_append")) return Value(old + between + change.value);
  if (change.operation.ends_with("_prepend")) return Value(change.value + between + old);
  return std::nullopt;
}

}  // namespace

Result<std::vector<EnvChange>> ctest_environment(const std::vector<std::string>& settings,
                                                 const std::vector<std::string>& modifications,
                                                 const EnvLookup& inherited) {
  std::map<std::string, Value> set, modified;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    if (name.empty()) continue;
    set[name] = equals == std::string::npos ? Value() : Value(setting.substr(equals + 1));
  }
  const auto original = [&](const std::string& name) {
    const auto found = set.find(name);
    return found == set.end() ? inherited(name) : found->second;
  };
  for (const std::string& text : modifications) {
    const auto change = parse(text);
    if (!change) return usage_error("ENVIRONMENT_MODIFICATION not understood: " + printable(text));
    const auto known = modified.find(change->name);
    const Value first = original(change->name);
    const auto after = apply(*change, known == modified.end() ? first : known->second, first);
    if (!after) return usage_error("ENVIRONMENT_MODIFICATION not understood: " + printable(text));
    modified[change->name] = *after;
  }
  modified.merge(set);
  std::vector<EnvChange> changes;
  for (const auto& [name, value] : modified) changes.push_back({name, value});
  return changes;
}

namespace {

namespace fs = std::filesystem;

std::optional<std::string> own_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

// The ctest that belongs to the cmake that made the folder, else the one in PATH.
Result<std::string> find_ctest(const std::string& folder) {
  if (const auto recorded = cmake_cache_value(folder, "CMAKE_CTEST_COMMAND"))
    if (auto found = find_program(*recorded)) return found;
  if (auto found = find_program("ctest")) return found;
  return usage_error("ctest is needed to list the tests of " + printable(folder), "",
                     "install CMake 3.14 or newer, or add it to PATH");
}

// CTest silently leaves out every test of a multi-configuration build for which it was
// not given a configuration.
Result<void> check_configuration(const std::string& folder, const ListOptions& options) {
  const std::string generator = cmake_cache_value(folder, "CMAKE_GENERATOR").value_or("");
  if (!options.ctest_config.empty() || generator.find("Multi-Config") == std::string::npos)
    return {};
  const std::string types = cmake_cache_value(folder, "CMAKE_CONFIGURATION_TYPES").value_or("");
  return usage_error(printable(folder) + " is a build folder of several configurations", "",
                     "choose one with --ctest-config" +
                         (types.empty() ? "" : ": " + printable(join(split(types, ';'), ", "))));
}

Command ctest_command(const std::string& program, std::vector<std::string> question,
                      const Target& target, const ListOptions& options) {
  Command command{{program}, {}, target.path};
  command.argv.insert(command.argv.end(), question.begin(), question.end());
  if (!options.ctest_config.empty())
    command.argv.insert(command.argv.end(), {"-C", options.ctest_config});
  command.argv.insert(command.argv.end(), target.argv.begin(), target.argv.end());
  return command;
}

bool has_no_program(const Test& entry) {
  return entry.command.argv.empty() && entry.obstacle.empty();
}

// The list says nothing about a missing program; only the verbose one names it.
void explain_missing_programs(std::vector<Test>& entries, const std::string& ctest,
                              const Target& target, const ListOptions& options,
                              Launcher& launcher) {
  if (std::ranges::none_of(entries, has_no_program)) return;
  const auto answer = ask(ctest_command(ctest, {"-N", "-V"}, target, options), options, launcher);
  const auto missing = parse_missing_programs(answer ? answer->output.text() : "");
  for (Test& entry : entries) {
    if (!has_no_program(entry)) continue;
    const auto found = missing.find(entry.id.name);
    entry.obstacle = missing_program(entry.id.name, found == missing.end() ? "" : found->second,
                                     target.path, options.ctest_config);
  }
}

Result<std::vector<Test>> list_entries(const Target& target, const ListOptions& options,
                                       Launcher& launcher) {
  if (const auto right = check_configuration(target.path, options); !right) return right.error();
  const auto program = find_ctest(target.path);
  if (!program) return program.error();
  const Command command = ctest_command(*program, {"--show-only=json-v1"}, target, options);
  const auto answer = ask(command, options, launcher);
  if (!answer) return answer.error();
  if (answer->code != 0)
    return listing_error(command, *answer, "could not read " + printable(target.path));
  auto tests = parse_ctest_json(answer->output.text(), target.name, own_environment);
  if (!tests)
    return listing_error(command, *answer,
                         "gave no list of tests that can be read (3.14 or newer is needed): " +
                             to_string(tests.error()));
  explain_missing_programs(*tests, *program, target, options, launcher);
  return tests;
}

// Lets an entry's executable list its cases in the environment that the entry declares.
class EntryLauncher : public Launcher {
 public:
  EntryLauncher(Launcher& launcher, const Command& entry) : launcher_(launcher), entry_(entry) {}

  ProcessResult launch(const Command& command, Duration timeout) override {
    Command adapted = command;
    adapted.env.insert(adapted.env.end(), entry_.env.begin(), entry_.env.end());
    adapted.cwd = entry_.cwd;
    return launcher_.launch(adapted, timeout);
  }

 private:
  Launcher& launcher_;
  const Command& entry_;
};

std::vector<std::string> arguments_of(const Test& test) {
  return {test.command.argv.begin() + 1, test.command.argv.end()};
}

// A rule about the output or exit of the whole executable says nothing about one of its cases,
// and a fixture is set up by all of them together.
bool can_open(const Test& entry) {
  return entry.framework != Framework::ctest && !entry.disabled && entry.obstacle.empty() &&
         !entry.rule.will_fail && entry.rule.pass_patterns.empty() &&
         entry.rule.fail_patterns.empty() && entry.rule.skip_patterns.empty() &&
         entry.fixtures.setup.empty() && entry.fixtures.cleanup.empty() &&
         !selects_cases(entry.framework, arguments_of(entry));
}

Test case_of_entry(const Test& entry, Test listed) {
  Test test = entry;
  test.id.name = entry.id.name + "/" + listed.id.name;
  test.is_entry = false;
  test.command.argv = std::move(listed.command.argv);
  test.disabled = listed.disabled;
  test.disabled_reason = std::move(listed.disabled_reason);
  test.suite = std::move(listed.suite);
  test.labels.insert(test.labels.end(), listed.labels.begin(), listed.labels.end());
  // Cases of one executable may share files and ports, as CTest never runs two of them at once.
  test.locks.push_back("entry " + entry.id.name);
  if (!listed.file.empty()) {
    test.file = std::move(listed.file);
    test.line = listed.line;
  }
  return test;
}

// The entry itself when its executable cannot list: running it will show why.
std::vector<Test> open_entry(const Test& entry, const ListOptions& options, Launcher& launcher) {
  if (!can_open(entry)) return {entry};
  const Target executable{entry.id.target, entry.framework, entry.command.argv.front(),
                          arguments_of(entry)};
  EntryLauncher in_entry(launcher, entry.command);
  auto cases = adapter_for(entry.framework).list(executable, options, in_entry);
  if (!cases || cases->empty()) return {entry};
  std::vector<Test> tests;
  for (Test& listed : *cases) tests.push_back(case_of_entry(entry, std::move(listed)));
  return tests;
}

// Whoever depends on an opened entry depends on each of its cases.
void follow_opened(std::vector<Test>& tests,
                   const std::map<std::string, std::vector<std::string>>& opened) {
  for (Test& test : tests) {
    std::vector<std::string> depends;
    for (const std::string& name : test.depends) {
      const auto found = opened.find(name);
      if (found == opened.end())
        depends.push_back(name);
      else
        depends.insert(depends.end(), found->second.begin(), found->second.end());
    }
    test.depends = std::move(depends);
  }
}

std::vector<Test> open_entries(const std::vector<Test>& entries, const ListOptions& options,
                               Launcher& launcher) {
  std::vector<Test> tests;
  std::map<std::string, std::vector<std::string>> opened;
  for (const Test& entry : entries) {
    for (Test& test : open_entry(entry, options, launcher)) {
      if (test.id != entry.id) opened[entry.id.name].push_back(test.id.name);
      tests.push_back(std::move(test));
    }
  }
  follow_opened(tests, opened);
  return tests;
}

// An entry that starts a test executable prints what that framework prints.
void recognise_entries(std::vector<Test>& entries) {
  std::map<std::string, Framework> known;
  for (Test& entry : entries) {
    if (entry.command.argv.empty()) continue;
    const std::string& path = entry.command.argv.front();
    if (!known.contains(path)) {
      const auto framework = recognise(path);
      known[path] = framework ? *framework : Framework::ctest;
    }
    entry.framework = known[path];
    auto env = neutral_environment(entry.framework);
    env.insert(env.end(), entry.command.env.begin(), entry.command.env.end());
    entry.command.env = std::move(env);
  }
}

class CtestAdapter : public Adapter {
 public:
  Result<std::vector<Test>> list(const Target& target, const ListOptions& options,
                                 Launcher& launcher) const override {
    auto tests = list_entries(target, options, launcher);
    if (!tests) return tests;
    make_ids_unique(*tests);
    recognise_entries(*tests);
    if (!options.open_cases) return tests;
    tests = open_entries(*tests, options, launcher);
    make_ids_unique(*tests);
    return tests;
  }
};

// What gtest_discover_tests() and the like list instead of the tests of a target that is not
// built.
std::optional<std::string> target_of_placeholder(const std::string& entry) {
  constexpr std::string_view ending = "_NOT_BUILT";
  if (!entry.ends_with(ending) || entry.size() == ending.size()) return std::nullopt;
  return entry.substr(0, entry.size() - ending.size());
}

std::string seen_from_here(const std::string& path) {
  std::error_code failed;
  const std::string below = path_below(path, fs::current_path(failed).string());
  return below.empty() ? path : below;
}

bool is_any(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Catch2 takes every word that is not an option, or the value of one, for a test spec.
bool selects_catch2_cases(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with('-')) return true;
    if (is_any(word.substr(0, word.find('=')),
               {"-f", "--input-file", "-c", "--section", "--shard-index", "--shard-count"}))
      return true;
    const bool takes_value = is_any(word, {"-r",
                                           "--reporter",
                                           "-o",
                                           "--out",
                                           "-x",
                                           "--abortx",
                                           "-w",
                                           "--warn",
                                           "-d",
                                           "--durations",
                                           "-D",
                                           "--min-duration",
                                           "-v",
                                           "--verbosity",
                                           "-n",
                                           "--name",
                                           "--order",
                                           "--rng-seed",
                                           "--use-colour",
                                           "--colour-mode",
                                           "--wait-for-keypress",
                                           "--benchmark-samples",
                                           "--benchmark-resamples"});
    if (takes_value) ++i;
  }
  return false;
}

bool selects_doctest_case(std::string_view word) {
  if (!word.starts_with('-')) return false;
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  if (word.starts_with("dt-")) word.remove_prefix(3);
  return is_any(word.substr(0, word.find('=')),
                {"test-case", "tc", "test-suite", "ts", "source-file", "sf", "subcase", "sc",
                 "first", "f", "last", "l", "test-case-exclude", "tce", "test-suite-exclude", "tse",
                 "source-file-exclude", "sfe"});
}

}  // namespace

std::optional<std::string> cmake_cache_value(const std::string& folder, std::string_view key) {
  std::ifstream cache(folder + "/CMakeCache.txt");
  for (std::string line; std::getline(cache, line);) {
    const size_t colon = line.find(':'), equals = line.find('=', colon == line.npos ? 0 : colon);
    if (colon == line.npos || equals == line.npos || line.substr(0, colon) != key) continue;
    return line.substr(equals + 1);
  }
  return std::nullopt;
}

std::map<std::string, std::string> parse_missing_programs(std::string_view text) {
  std::map<std::string, std::string> programs;
  std::string program;
  for (const std::string_view line : split_lines(text)) {
    constexpr std::string_view missing = "Could not find executable ", entry = "Test ";
    const std::string_view words = trim(line);
    if (line.starts_with(missing)) program = line.substr(missing.size());
    if (!words.starts_with(entry) || !trim(words.substr(entry.size())).starts_with('#')) continue;
    const size_t name = words.find(": ");
    if (name != words.npos && !program.empty()) programs.emplace(words.substr(name + 2), program);
    program.clear();
  }
  return programs;
}

std::string missing_program(const std::string& entry, const std::string& program,
                            const std::string& build_folder, const std::string& configuration) {
  std::string build = "cmake --build " + shell_quote(seen_from_here(build_folder));
  if (!configuration.empty()) build += " --config " + shell_quote(configuration);
  const auto target = target_of_placeholder(entry);
  if (target && (program.empty() || program == entry))
    return printable(fmt::format("not built: {0}, and so its tests are not known; {1} --target {2}",
                                 *target, build, shell_quote(*target)));
  if (program.empty()) return printable("CTest finds no program for it; " + build);
  if (program.find('/') == program.npos)
    return printable(fmt::format("no such program: {}; install it, or {}", program, build));
  return printable(fmt::format("not built: {}; {}", seen_from_here(program), build));
}

std::string ctest_target_name(const std::string& folder) {
  const std::string project = cmake_cache_value(folder, "CMAKE_PROJECT_NAME").value_or("");
  constexpr std::string_view no_name_given = "Project";
  if (!project.empty() && project != no_name_given) return project;
  const fs::path path = fs::path(folder + "/").lexically_normal();
  return path.parent_path().filename().string();
}

namespace {

// Such an entry checks that the executable answers a query, and does not run a test.
bool asks_a_question(std::string_view word) {
  if (!word.starts_with('-')) return false;
  const size_t name = word.find_first_not_of('-');
  if (name == word.npos) return false;
  word.remove_prefix(name);
  for (const std::string_view prefix : {"gtest_", "dt-"})
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  return word.starts_with("list") ||
         is_any(word.substr(0, word.find('=')), {"help", "h", "?", "version", "libidentify",
                                                 "count", "ltc", "lts", "lr", "build_info"});
}

}  // namespace

bool selects_cases(Framework framework, const std::vector<std::string>& arguments) {
  if (std::any_of(arguments.begin(), arguments.end(), asks_a_question)) return true;
  if (framework == Framework::catch2) return selects_catch2_cases(arguments);
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& word) {
    switch (framework) {
      case Framework::gtest:
        return word.starts_with("--gtest_filter") || word.starts_with("-gtest_filter");
      case Framework::doctest:
        return selects_doctest_case(word);
      case Framework::boost_test:
        return word.starts_with("--run_test") || word.starts_with("-t");
      default:
        return false;
    }
  });
}

const Adapter& ctest_adapter() {
  static const CtestAdapter adapter;
  return adapter;
}

}  // namespace unflake
