#include "app/project.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>

#include "app/version.h"
#include "lifecycle/owners.h"
#include "util/files.h"
#include "util/result.h"
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

namespace {

constexpr Duration patience = std::chrono::minutes(2);

bool matters(std::string_view line) {
  line = trim(line);
  return !line.empty() && !line.starts_with("//");
}

struct Hunk {
  int old_left = 0, new_left = 0;  // lines that are still to come
  int line = 0;                    // of the next one in the new file
};

// "4,2" or "4"
std::pair<int, int> line_and_count(std::string_view text) {
  std::pair<int, int> numbers{0, 1};
  const size_t comma = std::min(text.find(','), text.size());
  std::from_chars(text.data(), text.data() + comma, numbers.first);
  if (comma < text.size())
    std::from_chars(text.data() + comma + 1, text.data() + text.size(), numbers.second);
  return numbers;
}

// "@@ -12,0 +13,4 @@ in a function"
Hunk read_hunk(std::string_view head) {
  const std::vector<std::string> words = split(head, ' ');
  if (words.size() < 3 || words[1].size() < 2 || words[2].size() < 2) return {};
  const auto [old_line, old_count] = line_and_count(std::string_view(words[1]).substr(1));
  const auto [new_line, new_count] = line_and_count(std::string_view(words[2]).substr(1));
  return {old_count, new_count, new_line};
}

std::string new_file_of(std::string_view head) {
  head.remove_prefix(std::string_view("+++ ").size());
  if (const size_t tab = head.find('\t'); tab != std::string_view::npos) head = head.substr(0, tab);
  if (head.starts_with('"') && head.ends_with('"') && head.size() > 1)
    head = head.substr(1, head.size() - 2);
  return std::string(head.starts_with("b/") ? head.substr(2) : "");
}

class Git {
 public:
  Git(const std::string& folder, Launcher& launcher) : folder_(folder), launcher_(launcher) {}

  // None: git failed, or is missing.
  std::optional<std::string> operator()(std::vector<std::string> words) {
    Command command;
    command.argv = {"git", "--no-optional-locks", "-c", "core.quotePath=false"};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    command.cwd = folder_;
    const ProcessResult result = launcher_.launch(command, patience);
    if (result.end != ProcessResult::End::exited || result.code != 0) return std::nullopt;
    return result.output.text();
  }

  std::string line(std::vector<std::string> words) {
    return std::string(trim((*this)(std::move(words)).value_or("")));
  }

 private:
  std::string folder_;
  Launcher& launcher_;
};

Error no_such_revision(const std::string& revision, Git& git) {
  const std::string shown = printable(revision);
  if (git.line({"rev-parse", "--is-shallow-repository"}) == "true")
    return usage_error(
        fmt::format("git does not know the revision '{}' in this shallow clone", shown), "",
        "fetch more of the history: fetch-depth: 0 for actions/checkout, GIT_DEPTH: 0 in GitLab, "
        "or `git fetch --unshallow`");
  return usage_error(fmt::format("git does not know the revision '{}'", shown), "",
                     "give --changed-since a commit, a tag or a branch");
}

// Without what was added upstream meanwhile, when git can tell where they forked.
std::string common_ancestor(const std::string& commit, Git& git) {
  const std::string base = git.line({"merge-base", commit, "HEAD"});
  return base.empty() ? commit : base;
}

bool names(std::string_view path, std::string_view wanted) {
  return path == wanted || (path.size() > wanted.size() && path.ends_with(wanted) &&
                            path[path.size() - wanted.size() - 1] == '/');
}

bool is_script(const std::string& path) {
  char start[2] = {};
  std::ifstream(path).read(start, sizeof start);
  return start[0] == '#' && start[1] == '!';
}

class Comparison {
 public:
  Comparison(const std::vector<std::shared_ptr<const Test>>& tests, const Changes& changes)
      : changes_(changes) {
    for (const auto& test : tests)
      if (test->line > 0) starts_[test->file].insert(test->line);
  }

  // None: not known.
  std::optional<bool> is_changed(const Test& test) const {
    if (changes_.lines.empty() && changes_.new_files.empty()) return false;
    if (!test.file.empty()) return file_is_changed(test);
    for (const std::string& word : test.command.argv)
      if (file_is_edited(repository_path(word, changes_.root))) return true;
    if (test.framework == Framework::command && is_script(test.command.argv.front())) return false;
    return std::nullopt;
  }

 private:
  bool file_is_edited(const std::string& path) const {
    return !path.empty() && (changes_.lines.contains(path) || changes_.new_files.contains(path));
  }

  bool file_is_changed(const Test& test) const {
    const std::string path = repository_path(test.file, changes_.root);
    if (path.empty()) return false;
    for (const std::string& file : changes_.new_files)
      if (names(file, path)) return true;
    return std::ranges::any_of(changes_.lines, [&](const auto& edited) {
      return names(edited.first, path) && reaches(test, edited.second);
    });
  }

  bool reaches(const Test& test, const std::vector<int>& lines) const {
    if (test.line <= 0) return !lines.empty();
    const auto& starts = starts_.at(test.file);
    const auto next = starts.upper_bound(test.line);
    const int end = next == starts.end() ? std::numeric_limits<int>::max() : *next;
    return std::ranges::any_of(lines, [&](int line) { return line >= test.line && line < end; });
  }

  const Changes& changes_;
  std::map<std::string, std::set<int>> starts_;  // of the tests in a file
};

}  // namespace

ChangedLines read_diff(std::string_view diff) {
  ChangedLines changed;
  std::string file;
  Hunk hunk;
  for (const std::string_view line : split_lines(diff)) {
    if (hunk.old_left > 0 && line.starts_with('-')) {
      --hunk.old_left;
      if (matters(line.substr(1)) && !file.empty()) changed[file].push_back(std::max(hunk.line, 1));
    } else if (hunk.new_left > 0 && line.starts_with('+')) {
      --hunk.new_left;
      if (matters(line.substr(1)) && !file.empty()) changed[file].push_back(hunk.line);
      ++hunk.line;
    } else if (line.starts_with("+++ ")) {
      file = new_file_of(line);
    } else if (line.starts_with("@@ ")) {
      hunk = read_hunk(line);
    }
  }
  return changed;
}

Result<Changes> changes_since(const std::string& revision, const Project& project,
                              Launcher& launcher) {
  Git git(project.root, launcher);
  Changes changes;
  changes.root = git.line({"rev-parse", "--show-toplevel"});
  if (changes.root.empty())
    return usage_error("--changed-since needs a git repository", printable(project.root),
                       "run it in a clone, with git installed");
  const std::string commit =
      git.line({"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"});
  if (commit.empty()) return no_such_revision(revision, git);
  const auto diff = git({"diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv",
                         "--src-prefix=a/", "--dst-prefix=b/", common_ancestor(commit, git)});
  if (!diff)
    return internal_error(
        fmt::format("git cannot compare with '{}'", printable(revision)), "",
        "see what `git diff` says; a shallow or partial clone may lack what it needs");
  changes.lines = read_diff(*diff);
  Git at_root(changes.root, launcher);
  for (const std::string& file :
       split(at_root({"ls-files", "-z", "--others", "--exclude-standard"}).value_or(""), '\0'))
    if (!file.empty()) changes.new_files.insert(file);
  return changes;
}

ChangedTests changed_tests(const std::vector<std::shared_ptr<const Test>>& tests,
                           const Changes& changes) {
  const Comparison comparison(tests, changes);
  ChangedTests found;
  for (const auto& test : tests) {
    const auto changed = comparison.is_changed(*test);
    if (!changed)
      found.undecided.insert(test->id);
    else if (*changed)
      found.changed.insert(test->id);
  }
  return found;
}

}  // namespace unflake
