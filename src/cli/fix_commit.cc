#include "cli/fix_commit.h"

#include <algorithm>

#include "util/text.h"

namespace unflake {
namespace {

// A word that git could take for an option, or a name that moves, is none.
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
