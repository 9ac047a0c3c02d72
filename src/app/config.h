#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/values.h"
#include "symbols/project_code.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

// Whether a session in which tests were flaky and none always failed is a failure.
enum class FlakyResult { tell, pass, fail };
std::optional<FlakyResult> flaky_result_from(std::string_view name);

// What a profile may set. What it leaves out comes from the profile that it inherits from.
struct Settings {
  std::optional<size_t> jobs;
  std::optional<int> retries;
  std::optional<Duration> timeout;
  std::optional<Duration> grace;
  std::optional<FlakyResult> flaky;
  std::optional<std::string> target;
  std::optional<bool> fork_server;
  std::optional<bool> crash_places;
  std::optional<Duration> slow_after;
};

struct Override {
  std::string test;  // a glob over `target:name`
  std::optional<int> retries;
  std::optional<Duration> timeout;
  std::optional<bool> serial;
  std::optional<bool> fork_server;
  std::optional<bool> may_exit;
};

// What a project says about its own code, no matter who runs its tests or how.
struct CodeSettings {
  std::vector<std::string> project;    // folders and globs of project code
  std::vector<std::string> system;     // and of what is not
  std::vector<std::string> functions;  // whose entries are sites too
  std::vector<std::string> wrappers;   // that `explain` sees through, besides those it recognises

  ProjectCodeRules rules(const std::string& root) const { return {root, project, system}; }
};

// Where a project's runs are kept, whoever makes them.
struct HistorySettings {
  std::optional<std::string> store, project;
  Retention retention;
};

// What a CI build does that other sessions do not.
struct CiSettings {
  std::optional<int> retries;
  std::optional<FlakyResult> flaky;
  std::optional<int> mass_failure_tests, mass_failure_percent;
  std::optional<int> changed_runs;
  std::optional<int> quarantine_days, warn_days;
  std::optional<int> lift_runs;
};

struct Config {
  Settings settings;
  CiSettings ci;
  CodeSettings code;
  HistorySettings history;
  std::vector<Override> overrides;  // a later one wins
};

// A file that may be missing then counts as empty.
Result<Config> load_config(const std::string& path, const std::string& profile,
                           bool may_be_missing);
Result<Config> parse_config(std::string_view text, const std::string& path,
                            const std::string& profile);

}  // namespace unflake
