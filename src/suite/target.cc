#include "suite/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "suite/frameworks.h"
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
// often named the same.
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
  return glob_match(pattern, test.id.name) ||
         (means_id(pattern) && glob_match(pattern, to_string(test.id)));
}

// The name that people have in mind: GoogleTest's prefix only says that it is disabled.
std::string spoken_name(const Test& test) {
  std::string name = test.id.name;
  if (test.disabled) replace_all(name, "DISABLED_", "");
  return name;
}

std::string near_names(const std::vector<Test>& tests, const std::string& pattern) {
  constexpr size_t longest = 500;  // looking for likeness costs the product of two lengths
  std::map<std::string, const Test*> by_name;
  std::vector<std::string> names;
  for (const Test& test : tests) {
    if (test.id.name.size() > longest) continue;
    if (by_name.emplace(spoken_name(test), &test).second) names.push_back(spoken_name(test));
  }
  std::vector<std::string> near;
  for (const std::string& name : nearest(pattern.substr(0, longest), names, 5)) {
    const Test& test = *by_name[name];
    near.push_back(
        fmt::format("'{}'{}", printable(test.id.name), test.disabled ? " (disabled)" : ""));
  }
  return near.empty() ? "`unflake list TARGET` shows the tests"
                      : "did you mean " + join(near, " or ") + "?";
}

Error nothing_matched(const std::vector<Test>& tests, const std::string& pattern) {
  return usage_error(fmt::format("no test matches '{}'", printable(shorten(pattern, 200))), "",
                     near_names(tests, pattern));
}

Error only_disabled(std::string_view what, const Test& example) {
  std::string text = fmt::format("{}: '{}'", what, printable(shorten(example.id.name, 200)));
  if (!example.disabled_reason.empty())
    text += fmt::format(" ({})", printable(example.disabled_reason));
  return usage_error(std::move(text), "",
                     "name a disabled test exactly to run it, or use --include-disabled");
}

Error is_disabled(const Test& test, const std::string& pattern) {
  std::string text = fmt::format("'{}' is disabled", printable(shorten(pattern, 200)));
  if (!test.disabled_reason.empty()) text += ": " + printable(test.disabled_reason);
  return usage_error(std::move(text), "",
                     fmt::format("name it '{}' to run it anyway", printable(test.id.name)));
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
    if (test.disabled && spoken_name(test) == pattern) return is_disabled(test, pattern);
  for (const Test& test : tests)
    if (is_glob(pattern) &&
        (matches(test, pattern) || (test.disabled && glob_match(pattern, spoken_name(test)))))
      return only_disabled(
          fmt::format("'{}' matches only disabled tests", printable(shorten(pattern, 200))), test);
  return nothing_matched(tests, pattern);
}

bool is_in_any(const std::vector<TestSet>& sets, const Test& test) {
  return sets.empty() ||
         std::ranges::any_of(sets, [&](const TestSet& set) { return set.contains(test); });
}

bool is_excluded(const std::vector<std::string>& patterns, const Test& test) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return is_meant(test, pattern) || matches(test, pattern);
  });
}

Error empty_set(const std::vector<Test>& tests, const Restriction& restriction) {
  const Test* disabled = nullptr;
  for (const Test& test : tests) {
    if (!is_in_any(restriction.sets, test)) continue;
    if (!test.disabled)
      return usage_error("the set has tests, but none that match the names after the target", "-E",
                         "leave out the names, or the set");
    disabled = &test;
  }
  if (disabled) return only_disabled("the set has only disabled tests", *disabled);
  const std::vector<Error> unmatched = unmatched_parts(tests, {restriction.sets, {}});
  if (!unmatched.empty())
    return usage_error("the set has no tests: " + unmatched.front().what, "-E",
                       unmatched.front().next);
  return usage_error(
      "the set has no tests: there are tests for each of its parts, and none for all", "-E",
      "list the tests of a part: unflake list TARGET -E PART");
}

Error nothing_left(const std::vector<Test>& chosen) {
  return usage_error(
      fmt::format("--exclude leaves no test: it matches {}",
                  chosen.size() == 1 ? fmt::format("'{}', the only one",
                                                   printable(shorten(chosen[0].id.name, 200)))
                                     : fmt::format("all {} that are chosen", chosen.size())),
      "", "exclude fewer");
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
                       "give a test executable, a CTest build folder, or a command after `--`");
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

Result<std::vector<Test>> narrow(const std::vector<Test>& tests, const std::vector<Test>& chosen,
                                 const Restriction& restriction) {
  std::vector<Test> in_sets, left;
  std::ranges::copy_if(chosen, std::back_inserter(in_sets),
                       [&](const Test& test) { return is_in_any(restriction.sets, test); });
  if (in_sets.empty()) return empty_set(tests, restriction);
  std::ranges::copy_if(in_sets, std::back_inserter(left),
                       [&](const Test& test) { return !is_excluded(restriction.excluded, test); });
  if (left.empty()) return nothing_left(in_sets);
  return left;
}

std::vector<Error> unmatched_parts(const std::vector<Test>& tests, const Restriction& restriction) {
  std::vector<Error> unmatched;
  for (const TestSet& set : restriction.sets)
    for (Error& part : set.unmatched_parts(tests)) unmatched.push_back(std::move(part));
  for (const std::string& pattern : restriction.excluded)
    if (std::ranges::none_of(tests, [&](const Test& test) { return is_excluded({pattern}, test); }))
      unmatched.push_back(usage_error(
          fmt::format("--exclude '{}' matches no test", printable(shorten(pattern, 200))), "",
          near_names(tests, pattern)));
  return unmatched;
}

}  // namespace unflake
