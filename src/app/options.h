#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_line.h"
#include "app/config.h"
#include "app/project.h"
#include "store/store.h"
#include "suite/adapter.h"
#include "suite/target.h"
#include "util/result.h"

namespace unflake {

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
