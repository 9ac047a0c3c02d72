#include "suite/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "suite/ctest.h"
#include "suite/program.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// A colon would make ids ambiguous.
std::string without_colons(std::string name) {
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

std::string default_name(Framework framework, const std::string& path) {
  if (framework == Framework::command) return "command";
  if (framework == Framework::ctest) return ctest_target_name(path);
  return fs::path(path).filename().string();
}

std::string name_for(const TargetWords& words, Framework framework, const std::string& path) {
  return without_colons(words.target_name.empty() ? default_name(framework, path)
                                                  : words.target_name);
}

Result<Target> command_target(const TargetWords& words, std::vector<std::string> argv) {
  const auto program = find_program(argv.front());
  if (!program) return program.error();
  return Target{name_for(words, Framework::command, *program), Framework::command, *program,
                std::move(argv)};
}

Result<Framework> framework_of(const TargetWords& words, const std::string& path) {
  if (!words.forced || !exists(path)) return recognise(path);
  std::error_code ignored;
  if (fs::is_directory(path, ignored) != (*words.forced == Framework::ctest))
    return usage_error(fmt::format("{} cannot be a target of the framework {}", printable(path),
                                   to_string(*words.forced)),
                       "", "ctest takes a build folder, every other framework an executable");
  return *words.forced;
}

Result<Target> path_target(const TargetWords& words, const std::string& word) {
  const auto framework = framework_of(words, word);
  if (!framework) return framework.error();
  if (*framework == Framework::command) return command_target(words, {absolute_path(word)});
  const std::string path = absolute_path(word);
  return Target{name_for(words, *framework, path), *framework, path, {}};
}

// A target at that path, else what history knows by that name: a target and its source folder are
// often called the same.
std::optional<Result<Target>> named_target(const TargetWords& words, const std::string& name,
                                           const KnownTargets& known) {
  std::optional<Result<Target>> at_path;
  if (exists(name)) at_path = path_target(words, name);
  if (at_path && *at_path) return at_path;
  if (auto target = known ? known(name) : std::nullopt) return Result<Target>(std::move(*target));
  return at_path;
}

Error no_such_target(const TargetWords& words, const std::string& word) {
  const size_t colon = word.find(':');
  if (colon == std::string::npos) return path_target(words, word).error();
  return usage_error(fmt::format("no target '{}' in this folder or in the history",
                                 printable(shorten(word.substr(0, colon), 200))),
                     "", "give the path of the test executable or of the CTest build folder");
}

bool is_meant(const Test& test, const std::string& pattern) {
  return test.id.name == pattern || to_string(test.id) == pattern;
}

bool matches(const Test& test, const std::string& pattern) {
  return glob_match(pattern, test.id.name) || glob_match(pattern, to_string(test.id));
}

Error nothing_matched(const std::vector<Test>& tests, const std::string& pattern) {
  constexpr size_t longest = 500;  // looking for likeness costs the product of two lengths
  std::vector<std::string> names;
  for (const Test& test : tests)
    if (test.id.name.size() <= longest) names.push_back(test.id.name);
  std::vector<std::string> near;
  for (const std::string& name : nearest(pattern.substr(0, longest), names, 5))
    near.push_back(fmt::format("'{}'", printable(name)));
  return usage_error(fmt::format("no test matches '{}'", printable(shorten(pattern, 200))), "",
                     near.empty() ? "`unflake list TARGET` shows the tests"
                                  : "did you mean " + join(near, " or ") + "?");
}

Error only_disabled(std::string_view what, const Test& example) {
  std::string text = fmt::format("{}: '{}'", what, printable(shorten(example.id.name, 200)));
  if (!example.disabled_reason.empty())
    text += fmt::format(" ({})", printable(example.disabled_reason));
  return usage_error(std::move(text), "",
                     "name a disabled test exactly to run it, or use --include-disabled");
}

// Marks what one pattern means; false when it means nothing.
bool mark(const std::vector<Test>& tests, const std::string& pattern, bool include_disabled,
          std::vector<bool>& chosen) {
  bool exact = false, any = false;
  for (size_t i = 0; i < tests.size(); ++i) {
    if (!is_meant(tests[i], pattern)) continue;
    chosen[i] = exact = true;
  }
  if (exact || !is_glob(pattern)) return exact;
  for (size_t i = 0; i < tests.size(); ++i) {
    if ((tests[i].disabled && !include_disabled) || !matches(tests[i], pattern)) continue;
    chosen[i] = any = true;
  }
  return any;
}

Error explain_miss(const std::vector<Test>& tests, const std::string& pattern) {
  for (const Test& test : tests)
    if (is_glob(pattern) && matches(test, pattern))
      return only_disabled(
          fmt::format("'{}' matches only disabled tests", printable(shorten(pattern, 200))), test);
  return nothing_matched(tests, pattern);
}

std::vector<Test> keep(const std::vector<Test>& tests, const std::vector<bool>& chosen) {
  std::vector<Test> kept;
  for (size_t i = 0; i < tests.size(); ++i)
    if (chosen[i]) kept.push_back(tests[i]);
  return kept;
}

}  // namespace

Result<Selection> resolve(const TargetWords& words, const KnownTargets& known) {
  if (!words.command.empty() && !words.words.empty())
    return usage_error("both a target and a command were given", "",
                       "give a target or a command, not both");
  if (!words.command.empty()) {
    auto target = command_target(words, words.command);
    if (!target) return target.error();
    return Selection{std::move(*target), {}};
  }
  if (words.words.empty())
    return usage_error("no target was given", "",
                       "give a test executable, a CTest build folder, or a command behind `--`");
  const std::string& first = words.words.front();
  Selection selection{{}, {words.words.begin() + 1, words.words.end()}};
  auto target = named_target(words, first, known);
  if (const size_t colon = first.find(':'); !target && colon != std::string::npos) {
    target = named_target(words, first.substr(0, colon), known);
    selection.patterns.insert(selection.patterns.begin(), first.substr(colon + 1));
  }
  if (!target) return no_such_target(words, first);
  if (!*target) return target->error();
  selection.target = std::move(**target);
  return selection;
}

Result<std::vector<Test>> select(const std::vector<Test>& tests,
                                 const std::vector<std::string>& patterns, bool include_disabled) {
  if (tests.empty()) return usage_error("the target has no tests", "", "is it the right one?");
  std::vector<bool> chosen(tests.size(), false);
  for (const std::string& pattern : patterns)
    if (!mark(tests, pattern, include_disabled, chosen)) return explain_miss(tests, pattern);
  if (patterns.empty())
    for (size_t i = 0; i < tests.size(); ++i) chosen[i] = include_disabled || !tests[i].disabled;
  std::vector<Test> kept = keep(tests, chosen);
  if (kept.empty()) return only_disabled("every test of the target is disabled", tests.front());
  return kept;
}

}  // namespace unflake
