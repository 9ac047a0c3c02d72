#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config.h"
#include "app/project.h"
#include "store/store.h"
#include "suite/adapter.h"
#include "suite/target.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

// What unflake's exit status says to a script. Documented in docs/formats.md.
enum class ExitCode {
  success = 0,
  test_failed = 1,      // a test failed in every one of its runs
  usage = 2,            // the command line, the configuration or the target is not right
  flaky_only = 3,       // no test always failed, and a test both failed and passed
  unflake_failed = 4,   // unflake or the machine failed, not a test
  only_margin = 5,      // no test to blame: it fails when a machine stands still
  nothing_shown = 6,    // the runs say neither yes nor no
  signal_offset = 128,  // + the signal that stopped it
};

inline int exit_code_of_signal(int signal) {
  return static_cast<int>(ExitCode::signal_offset) + signal;
}

inline ExitCode exit_code_of(const Error& error) {
  return error.kind == ErrorKind::usage ? ExitCode::usage : ExitCode::unflake_failed;
}

// What a command says outside of a session: collected, then written to standard output at once.
class Page {
 public:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  // The exit code: a reader that goes away early (`| head`) has what it wanted; a full disk is an
  // error.
  int write_out() const;

 private:
  std::string text_;
};

}  // namespace unflake

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace unflake {

// Says on standard error what happened, where, and what to do next. Returns the exit code for it.
int report_error(const Error& error);

// The words after the command's name, split at the first `--`.
struct Words {
  std::vector<std::string> options;
  std::vector<std::string> command;  // after `--`
  bool has_command = false;          // there was a `--`
};

// What an option can be read into; an optional one stays empty when the option is not given.
template <typename Value>
concept OptionValue = std::same_as<Value, std::string> || std::same_as<Value, int> ||
    std::same_as<Value, uint64_t> || std::same_as<Value, std::vector<std::string>> ||
    std::same_as<Value, std::optional<std::string>> || std::same_as<Value, std::optional<int>> ||
    std::same_as<Value, std::optional<uint64_t>> || std::same_as<Value, std::optional<Duration>>;

// What else there is to say about an option of a CommandLine.
class Option {
 public:
  Option takes(const std::string& what) const;  // in the help, as FILE
  Option required() const;
  Option between(int least, int most) const;
  Option one_of(const std::vector<std::string>& words) const;
  Option excludes(const std::string& other) const;
  Option from_environment(const std::string& variable) const;  // unless it is given
  Option separated_by(char delimiter) const;                   // several in one word
  // Of a list: one word each time that it is given, so that others may follow.
  Option one_at_a_time() const;

 private:
  friend class CommandLine;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

// One command's options, with unflake's conventions: exit codes, errors, `--help` anywhere. It
// hides CLI11, whose templates take longer to compile than the rest of a command.
class CommandLine {
 public:
  CommandLine(const std::string& command, const std::string& help);
  ~CommandLine();

  // Names are as in "-j,--jobs"; one without dashes takes words that are not options.
  template <OptionValue Value>
  Option option(const std::string& names, Value& value, const std::string& description);
  Option flag(const std::string& names, bool& value, const std::string& description);
  // The negated name has a `!` in front, as in "--fork,!--no-fork".
  Option flag(const std::string& names, std::optional<bool>& value, const std::string& description);

  // The exit code when there is nothing more to do: help was shown, or the words were wrong.
  std::optional<int> parse(const Words& words);

 private:
  std::unique_ptr<CLI::App> app_;
};

// Where history is, for every command that reads or writes it.
struct StoreOptions {
  std::string url;  // empty: as configured, else the project's own file
  std::string
      project;  // empty: as configured, else none in a file and the repository's on a server
  bool no_history = false;  // nothing is recorded
  void add_to(CommandLine& line);
  // For a command that makes runs.
  void add_recording_to(CommandLine& line);
  StoreAddress address(const Project& project, const Config& config) const;
};

// Where the quarantine is, for every command that obeys or edits it.
struct QuarantineOptions {
  std::string path;  // empty: the project's own
  void add_to(CommandLine& line);
  std::string file(const Project& project) const;
};

struct ConfiguredProject {
  Project project;
  Config config;
};

// Which configuration, for every command that obeys it.
struct ConfigOptions {
  std::string path;  // empty: the project's own, which may be missing
  std::string profile = "default";
  void add_to(CommandLine& line);
  std::string file(const Project& project) const;
  Result<Config> load(const Project& project) const;
  // The project that the current folder is in.
  Result<ConfiguredProject> find() const;
};

// The rest of a command on a history: adds the options that say which one, parses the words, and
// does the work. Gives the exit code.
int act_on_history(CommandLine& line, const Words& words,
                   const std::function<Result<int>(const ConfiguredProject& project,
                                                   const StoreAddress& history)>& work);

// What to run, in the same words for every command: TARGET [NAME-OR-GLOB...], a full id, or
// `-- command args`.
struct TargetOptions {
  std::vector<std::string> words;
  std::string framework;
  std::string target_name;
  std::vector<std::string> test_args;
  std::string ctest_config;
  bool open_cases = false;
  bool include_disabled = false;
  std::vector<std::string> sets, excluded;
  bool labels = false;  // are shown

  void add_to(CommandLine& line);
};

struct SelectedTests {
  Target target;
  std::vector<std::shared_ptr<const Test>> all;       // of the target
  std::vector<std::shared_ptr<const Test>> selected;  // by the user's words
  size_t left_out = 0;                                // disabled tests that the words match too
  std::vector<Error> unmatched = {};  // parts of the words that do nothing, or not for all tests
};

// The targets of earlier sessions, by name. A missing or unreadable history is an
// error only when a name is looked up.
using FindTarget = std::function<Result<std::optional<TargetRecord>>(const std::string& name)>;

// Looks into a history that stays as it is.
FindTarget find_target_in(const StoreAddress& history);

// Finds the target, asks it for its tests and picks the ones that the words name.
Result<SelectedTests> select_tests(const TargetOptions& options, const Words& words,
                                   const std::string& default_target, const Project& project,
                                   const FindTarget& find_target, Launcher& launcher);

// "2026-03-01", "2026-03-01 12:00", "2026-03-01T12:00:30Z"; always UTC.
Result<TimePoint> parse_time(std::string_view text);

}  // namespace unflake
