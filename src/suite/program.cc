#include "suite/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "suite/adapter.h"
#include "util/files.h"
#include "util/result.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

Error not_runnable(const std::string& word) {
  std::error_code ignored;
  if (fs::is_directory(word, ignored))
    return usage_error(printable(word) + " is a folder", "", "give a program to run");
  if (fs::exists(word, ignored))
    return usage_error(printable(word) + " is not executable", "",
                       "chmod +x it, or start it through its interpreter");
  return usage_error("there is no program " + printable(word), "", "check the path; is it built?");
}

}  // namespace

Result<std::string> find_program(const std::string& word) {
  if (word.find('/') != std::string::npos)
    return is_program(word) ? Result<std::string>(absolute_path(word)) : not_runnable(word);
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / word;
    if (!word.empty() && is_program(candidate)) return absolute_path(candidate);
  }
  if (is_program(word))
    return usage_error(printable(word) + " is not in PATH", "",
                       "write ./" + printable(word) + " for the one in this folder");
  return usage_error("there is no program '" + printable(word) + "' in PATH", "",
                     "check the spelling, or give its path");
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error);
  return (error ? fs::path(path) : full).lexically_normal().string();
}

namespace {

// Shards: one case would be skipped or not depending on the CI node. Filters: they would hide tests
// from the list. Output: parallel runs would overwrite one report file, and say nothing on the
// terminal. Break and brief: they change how a failure or a skip looks. Seeds and the handling of
// exceptions stay: they belong to the test.
constexpr std::string_view gtest_variables[] = {
    "GTEST_TOTAL_SHARDS",   "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE",
    "TESTBRIDGE_TEST_ONLY", "GTEST_FILTER",      "GTEST_REPEAT",
    "GTEST_OUTPUT",         "XML_OUTPUT_FILE",   "GTEST_BREAK_ON_FAILURE",
    "GTEST_BRIEF",          "GTEST_LIST_TESTS",
};

// Read by Catch2 3 when it finds itself under Bazel.
constexpr std::string_view catch2_variables[] = {
    "TEST_TOTAL_SHARDS",    "TEST_SHARD_INDEX", "TEST_SHARD_STATUS_FILE",
    "TESTBRIDGE_TEST_ONLY", "XML_OUTPUT_FILE",
};

// RESULT_CODE=no would turn every failure into a pass; WAIT_FOR_DEBUGGER would hang; LOG_LEVEL and
// REPORT_LEVEL can silence what gives a failure's place.
constexpr std::string_view boost_variables[] = {
    "BOOST_TEST_RUN_FILTERS",   "BOOST_TEST_RANDOM",        "BOOST_TEST_LIST_CONTENT",
    "BOOST_TEST_LIST_LABELS",   "BOOST_TEST_LOG_FORMAT",    "BOOST_TEST_LOG_SINK",
    "BOOST_TEST_LOG_LEVEL",     "BOOST_TEST_LOGGER",        "BOOST_TEST_OUTPUT_FORMAT",
    "BOOST_TEST_REPORT_FORMAT", "BOOST_TEST_REPORT_LEVEL",  "BOOST_TEST_REPORT_SINK",
    "BOOST_TEST_RESULT_CODE",   "BOOST_TEST_SHOW_PROGRESS", "BOOST_TEST_WAIT_FOR_DEBUGGER",
};

template <size_t count>
std::vector<EnvChange> taken_out(const std::string_view (&names)[count]) {
  std::vector<EnvChange> changes;
  for (const std::string_view name : names) changes.push_back({std::string(name), std::nullopt});
  return changes;
}

std::string how_it_ended(const ProcessResult& result, Duration timeout) {
  switch (result.end) {
    case ProcessResult::End::signalled:
      return fmt::format("died of {} while listing its tests", signal_name(result.code));
    case ProcessResult::End::timed_out:
      return fmt::format("did not list its tests within {}", format_duration(timeout));
    case ProcessResult::End::cancelled:
      return "was stopped while listing its tests";
    case ProcessResult::End::not_started:
      return "could not be started" + (result.error.empty() ? "" : ": " + result.error);
    case ProcessResult::End::exited:
      break;
  }
  return fmt::format("exited with status {} while listing its tests", result.code);
}

std::string last_lines(const CapturedOutput& output) {
  constexpr size_t most_bytes = 2000;
  constexpr size_t most_lines = 5;
  const std::string text = output.text();
  const std::string_view end = trim(text);
  const auto lines = split_lines(end.substr(end.size() - std::min(end.size(), most_bytes)));
  std::vector<std::string> last;
  for (size_t i = lines.size() - std::min(lines.size(), most_lines); i < lines.size(); ++i)
    last.push_back(shorten(printable(trim(lines[i])), 300));
  return join(last, " | ");
}

}  // namespace

std::vector<EnvChange> neutral_environment(Framework framework) {
  switch (framework) {
    case Framework::gtest:
      return taken_out(gtest_variables);
    case Framework::catch2:
      return taken_out(catch2_variables);
    case Framework::boost_test:
      return taken_out(boost_variables);
    case Framework::doctest:  // reads no variables
    case Framework::ctest:
    case Framework::command:
      break;
  }
  return {};
}

Command target_command(const Target& target, std::vector<std::string> more) {
  Command command;
  command.argv.push_back(target.path);
  command.argv.insert(command.argv.end(), target.argv.begin(), target.argv.end());
  command.argv.insert(command.argv.end(), more.begin(), more.end());
  command.env = neutral_environment(target.framework);
  return command;
}

Error listing_error(const Command& command, const ProcessResult& result, std::string_view what) {
  std::string text = fmt::format("{} {}", printable(command.argv.front()), what);
  const std::string errors = last_lines(result.errors);
  if (!errors.empty()) text += "; its last words: " + errors;
  return usage_error(std::move(text), "",
                     fmt::format("see what this prints: {}; a program that cannot list its tests "
                                 "runs as a whole with `unflake run -- PROGRAM`",
                                 shorten(printable(shell_join(command.argv)), 500)));
}

Result<ProcessResult> ask(const Command& command, const ListOptions& options, Launcher& launcher) {
  ProcessResult result = launcher.launch(command, options.timeout);
  if (result.end != ProcessResult::End::exited)
    return listing_error(command, result, how_it_ended(result, options.timeout));
  if (result.output.dropped() > 0)
    return listing_error(command, result, "printed more than can be kept while listing its tests");
  return result;
}

Test make_test(const Target& target, const ListedCase& listed, std::string name,
               std::vector<std::string> selection) {
  Test test;
  test.id = {target.name, std::move(name)};
  test.framework = target.framework;
  test.command = target_command(target, std::move(selection));
  test.disabled = listed.disabled;
  test.file = listed.file;
  test.line = listed.line;
  test.suite = listed.suite;
  test.labels = listed.labels;
  return test;
}

void mark_inseparable(Test& test, std::string_view other) {
  test.disabled = true;
  test.disabled_reason = fmt::format("{}{} has no filter that selects it without '{}'", inseparable,
                                     to_string(test.framework), printable(shorten(other, 200)));
}

Error cannot_share(const Test& test, std::string_view why) {
  return usage_error(fmt::format("it cannot share a process with other tests: {}", printable(why)),
                     to_string(test.id), "run it alone, or with others of the same program");
}

Result<std::vector<size_t>> positions_in(const std::vector<const Test*>& listed,
                                         const std::vector<const Test*>& order) {
  std::vector<size_t> positions;
  for (const Test* test : order) {
    const auto found = std::ranges::find(listed, test->id, &Test::id);
    if (found == listed.end()) return cannot_share(*test, "its program does not list it");
    positions.push_back(static_cast<size_t>(found - listed.begin()));
  }
  return positions;
}

std::vector<const Test*> in_listing_order(const std::vector<const Test*>& tests,
                                          const std::vector<const Test*>& listed) {
  std::map<TestId, const Test*> wanted;
  for (const Test* test : tests) wanted.emplace(test->id, test);
  std::vector<const Test*> sorted;
  for (const Test* test : listed)
    if (const auto found = wanted.find(test->id); found != wanted.end())
      sorted.push_back(found->second);
  return sorted;
}

namespace {

// The adapter's words are the last ones: the target's own may look alike.
size_t where_it_begins(const Test& test, std::string_view first) {
  const auto& words = test.command.argv;
  size_t at = words.size();
  while (at > 0 && !words[at - 1].starts_with(first)) --at;
  return at == 0 ? words.size() : at - 1;
}

}  // namespace

std::vector<std::string> selection_from(const Test& test, std::string_view first) {
  const auto& words = test.command.argv;
  return {words.begin() + static_cast<std::ptrdiff_t>(where_it_begins(test, first)), words.end()};
}

Command with_selection(const Test& test, std::string_view first, std::vector<std::string> words) {
  Command command = test.command;
  command.argv.resize(where_it_begins(test, first));
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  return command;
}

void make_ids_unique(std::vector<Test>& tests) {
  std::set<std::string> taken;
  for (const Test& test : tests) taken.insert(test.id.name);
  std::map<std::string, int> seen;
  for (Test& test : tests) {
    int& count = seen[test.id.name];
    if (++count == 1) continue;
    std::string unique;
    do {
      unique = fmt::format("{} #{}", test.id.name, count);
    } while (!taken.insert(unique).second && ++count);
    test.id.name = unique;
  }
}

namespace {

namespace fs = std::filesystem;

std::string portable_path(const std::string& path, const std::string& project) {
  const fs::path normal = fs::path(path).lexically_normal();
  const fs::path inside = normal.lexically_relative(project);
  if (!inside.empty() && *inside.begin() != "..") return inside.string();
  const fs::path last = normal.has_filename() ? normal : normal.parent_path();
  return last.filename().empty() ? path : last.filename().string();
}

// `/path` and `--option=/path`.
std::string portable_word(const std::string& word, const std::string& project) {
  if (word.starts_with('/')) return portable_path(word, project);
  const size_t equals = word.find("=/");
  if (equals == std::string::npos) return word;
  return word.substr(0, equals + 1) + portable_path(word.substr(equals + 1), project);
}

class CommandAdapter : public Adapter {
 public:
  Result<std::vector<Test>> list(const Target& target, const ListOptions&,
                                 Launcher&) const override {
    if (target.argv.empty())
      return usage_error("no command was given", target.name, "write it after `--`");
    const auto program = find_program(target.path.empty() ? target.argv.front() : target.path);
    if (!program) return program.error();
    Test test;
    test.id = {target.name, command_name(target.argv, project_root())};
    test.command.argv = target.argv;
    test.command.argv.front() = *program;
    return std::vector<Test>{std::move(test)};
  }
};

}  // namespace

std::string command_name(const std::vector<std::string>& argv, const std::string& project) {
  std::vector<std::string> words;
  for (const std::string& word : argv)
    words.push_back(words.empty() ? fs::path(word).filename().string()
                                  : portable_word(word, project));
  return shell_join(words);
}

const Adapter& command_adapter() {
  static const CommandAdapter adapter;
  return adapter;
}

}  // namespace unflake
