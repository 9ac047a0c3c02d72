#include "app/project.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "app/version.h"
#include "util/paths.h"
#include "util/system.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

std::string branch_from_ci() {
  for (const char* name : {"GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME",
                           "BUILDKITE_BRANCH", "CIRCLE_BRANCH", "BRANCH_NAME"})
    if (std::string value = environment_variable(name); !value.empty()) return value;
  return "";
}

std::string machine_name() {
  if (std::string given = environment_variable("UNFLAKE_MACHINE"); !given.empty()) return given;
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// "git@host:owner/name.git" and "https://host/owner/name" are both "owner/name".
std::string end_of_address(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  if (url.ends_with(".git")) url.resize(url.size() - 4);
  const size_t name = url.find_last_of("/:");
  if (name == std::string::npos || name == 0) return url;
  const size_t owner = url.find_last_of("/:", name - 1);
  return url.substr(owner == std::string::npos ? 0 : owner + 1);
}

// What CI services call a build of which a session may be one job.
std::string build_from_ci() {
  for (const char* name : {"UNFLAKE_BUILD", "GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILDKITE_BUILD_ID",
                           "CIRCLE_WORKFLOW_ID", "BUILD_BUILDID", "BUILD_TAG"})
    if (const char* value = std::getenv(name); value && *value) return value;
  return "";
}

void read_git_status(std::string_view status, Surroundings& surroundings) {
  constexpr std::string_view commit = "# branch.oid ", branch = "# branch.head ";
  for (const std::string_view line : split_lines(status)) {
    if (line.starts_with(commit))
      surroundings.commit = line.substr(commit.size());
    else if (line.starts_with(branch))
      surroundings.branch = line.substr(branch.size());
    else if (!line.starts_with("#"))
      surroundings.dirty = true;
  }
  if (surroundings.commit == "(initial)") surroundings.commit.clear();
  if (surroundings.branch == "(detached)") surroundings.branch = branch_from_ci();
}

}  // namespace

Result<Project> find_project() {
  const std::string root = project_root();
  if (!root.empty()) return Project{root};
  return usage_error("the current folder is gone", "", "cd to a folder that exists");
}

void make_folder(const Project& project) {
  std::error_code failed;
  if (fs::create_directory(project.root + "/.unflake", failed))
    std::ofstream(project.path(".gitignore")) << "history.db*\nexplain/\n";
}

std::string repository_name(const Project& project) {
  std::ifstream config(project.root + "/.git/config");
  bool in_origin = false;
  for (std::string line; std::getline(config, line);) {
    if (line.starts_with("[")) in_origin = line == "[remote \"origin\"]";
    const size_t url = line.find("url = ");
    if (in_origin && url != std::string::npos) return end_of_address(line.substr(url + 6));
  }
  return fs::path(project.root).filename();
}

Surroundings survey(const Project& project, Launcher& launcher) {
  Surroundings surroundings;
  surroundings.machine = machine_name();
  surroundings.unflake_version = version;
  surroundings.build = build_from_ci();
  Command git;
  git.argv = {"git",      "--no-optional-locks", "status", "--porcelain=v2",
              "--branch", "--untracked-files=no"};
  git.cwd = project.root;
  const ProcessResult result = launcher.launch(git, std::chrono::seconds(5));
  if (result.end == ProcessResult::End::exited && result.code == 0)
    read_git_status(result.output.text(), surroundings);
  return surroundings;
}

namespace {

// A word that git could take for an option, or a name that moves, does not count.
bool is_commit_id(const std::string& text) {
  const auto is_hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  return text.size() >= 7 && text.size() <= 64 && std::ranges::all_of(text, is_hex);
}

std::optional<CapturedOutput> git_show(const Project& project, const std::string& commit,
                                       const std::vector<std::string>& how, Launcher& launcher) {
  Command git;
  git.argv = {
      "git",          "--no-optional-locks", "-c",        "core.quotePath=false", "show",
      "-m",           "--first-parent",      "--format=", "--no-color",           "--no-ext-diff",
      "--no-textconv"};
  git.argv.insert(git.argv.end(), how.begin(), how.end());
  git.argv.insert(git.argv.end(), {commit, "--"});
  git.env = {{"GIT_NO_LAZY_FETCH", "1"}};
  git.cwd = project.root;
  ProcessResult result = launcher.launch(git, std::chrono::seconds(10));
  if (result.end != ProcessResult::End::exited || result.code != 0) return std::nullopt;
  return std::move(result.output);
}

}  // namespace

std::optional<CommitChange> change_of_commit(const Project& project, const std::string& commit,
                                             Launcher& launcher) {
  if (!is_commit_id(commit)) return std::nullopt;
  const auto names = git_show(project, commit, {"--name-only", "-z"}, launcher);
  if (!names) return std::nullopt;
  const auto diff = git_show(project, commit, {"--patch", "--unified=3"}, launcher);
  if (!diff) return std::nullopt;
  CommitChange change;
  for (std::string& path : split(names->head, '\0'))
    if (!path.empty()) change.paths.push_back(std::move(path));
  change.diff = diff->head;
  change.whole = diff->dropped() == 0 && names->dropped() == 0 && diff->tail.empty();
  return change;
}

}  // namespace unflake
