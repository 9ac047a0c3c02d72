#include "cli/recorded.h"

#include <filesystem>

#include "suite/program.h"

namespace unflake {
namespace {

std::string target_of(const Project& project, const Repro& repro, const std::string& other_target) {
  if (!other_target.empty()) return absolute_path(other_target);
  if (repro.target_path.empty() || repro.target_path[0] == '/') return repro.target_path;
  return project.root + "/" + repro.target_path;
}

Words command_words(const std::string& path, const Repro& repro) {
  Words words;
  words.has_command = true;
  words.command = repro.target_argv.empty() ? std::vector<std::string>{path} : repro.target_argv;
  if (words.command[0].find('/') != std::string::npos) words.command[0] = path;
  return words;
}

}  // namespace

// The words are those with which a user would name the test to another command.
Result<std::unique_ptr<OneTest>> find_recorded_test(const Project& project, const Repro& repro,
                                                    const std::string& other_target,
                                                    OneTestOptions options) {
  const std::string path = target_of(project, repro, other_target);
  options.target.include_disabled = true;
  options.target.target_name = repro.test.target;
  if (repro.timeout > Duration::zero()) options.timeout = repro.timeout;
  if (repro.framework == Framework::command)
    return OneTest::find(options, command_words(path, repro));
  std::error_code ignored;
  const bool is_ctest = std::filesystem::is_directory(path, ignored);
  options.target.words = {path, repro.test.name};
  options.target.framework = to_string(is_ctest ? Framework::ctest : repro.framework);
  options.target.open_cases = is_ctest && repro.framework != Framework::ctest;
  if (!is_ctest) options.target.test_args = repro.target_argv;
  return OneTest::find(options, {});
}

Plan profile_plan(const Repro& repro) {
  Plan plan;
  plan.agent = plan.events = plan.stacks = true;  // the names of sites come from stacks
  plan.system_calls = repro.plan.system_calls;
  plan.groups_off = repro.plan.groups_off;
  return plan;
}

}  // namespace unflake
