#include "rebuild/source_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "util/files.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = "/lock";

std::string temporary_folder() {
  const std::string given = environment_variable("TMPDIR");
  return given.starts_with('/') ? given : "/tmp";
}

// A build may have made files or folders read-only.
void remove_tree(const std::string& folder) {
  std::error_code failed;
  fs::remove_all(folder, failed);
  if (!failed) return;
  for (fs::recursive_directory_iterator
           at(folder, fs::directory_options::skip_permission_denied, failed),
       end;
       !failed && at != end; at.increment(failed)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored))
      fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
  }
  fs::remove_all(folder, failed);
}

bool is_ours(const std::string& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::getuid();
}

// One without a lock file is being made, or is kept.
bool is_left_over(const std::string& folder) {
  const UniqueFd lock(::open((folder + lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_leftovers(const std::string& parent) {
  std::error_code failed;
  for (fs::directory_iterator at(parent, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string folder = at->path().string();
    if (at->path().filename().string().starts_with(work_folder_prefix) && is_ours(folder) &&
        is_left_over(folder))
      remove_tree(folder);
  }
}

}  // namespace

Result<WorkFolder> WorkFolder::make() {
  const std::string parent = temporary_folder();
  remove_leftovers(parent);
  std::string path = parent + "/" + work_folder_prefix + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return internal_error(fmt::format("cannot make a temporary folder: {}", std::strerror(errno)),
                          printable(parent), "set TMPDIR to a folder that can be written to");
  UniqueFd lock(::open((path + lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    remove_tree(path);
    return internal_error(fmt::format("cannot lock a temporary folder: {}", std::strerror(error)),
                          printable(path));
  }
  return WorkFolder(std::move(path), std::move(lock));
}

WorkFolder::WorkFolder(WorkFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")),
      lock_(std::move(other.lock_)),
      is_kept_(other.is_kept_) {}

void WorkFolder::keep() {
  is_kept_ = true;
  ::unlink((path_ + lock_name).c_str());
}

WorkFolder::~WorkFolder() {
  if (!path_.empty() && !is_kept_) remove_tree(path_);
}

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Duration longest_git = 5min;

std::string last_words(const ProcessResult& result) {
  std::string said(trim(result.errors.text()));
  if (said.empty()) said = trim(result.output.text());
  replace_all(said, "\n", "; ");
  return printable(shorten(said, 2000));
}

bool went_well(const ProcessResult& result) {
  return result.end == ProcessResult::End::exited && result.code == 0;
}

// Whatever git was told by the environment of a hook or a CI job is about another repository.
ProcessResult git(const std::string& folder, const std::vector<std::string>& words,
                  Launcher& launcher, const std::vector<EnvChange>& env = {}) {
  Command command;
  command.argv = {"git", "--no-optional-locks",      "-c", "core.quotePath=false",
                  "-c",  "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false"};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  command.cwd = folder;
  for (const char* name : {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
                           "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX"})
    command.env.push_back({name, std::nullopt});
  command.env.push_back({"GIT_NO_LAZY_FETCH", "1"});
  command.env.push_back({"GIT_TERMINAL_PROMPT", "0"});
  command.env.push_back({"LC_ALL", "C"});
  command.env.insert(command.env.end(), env.begin(), env.end());
  return launcher.launch(command, longest_git);
}

Result<std::string> git_says(const std::string& folder, const std::vector<std::string>& words,
                             const std::string& failed, Launcher& launcher) {
  const ProcessResult result = git(folder, words, launcher);
  if (result.end == ProcessResult::End::cancelled) return internal_error("stopped");
  if (!went_well(result))
    return internal_error(
        failed + ": " + (result.error.empty() ? last_words(result) : result.error),
        printable(folder));
  return result.output.text();
}

std::string line_of(const Result<std::string>& said) {
  return said ? std::string(trim(*said)) : "";
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return internal_error("cannot write to the copy", printable(path),
                        "make room in TMPDIR, or set it to another folder");
}

// The folder for temporary files may be part of the sources.
bool is_left_out(const fs::path& path) {
  constexpr std::string_view names[] = {".git", ".hg", ".svn", ".unflake"};
  const std::string name = path.filename().string();
  return name.starts_with(work_folder_prefix) || std::ranges::find(names, name) != std::end(names);
}

// Copies files one by one, within bounds.
class PlainCopy {
 public:
  PlainCopy(const Sources& tree, const std::string& to, const CopyLimits& limits)
      : root_(tree.root), to_(to), left_(limits) {}

  // A file, a link, or a folder with all that is below it.
  Result<void> take(const std::string& name) {
    const fs::path from = fs::path(root_) / name;
    std::error_code failed;
    if (fs::is_symlink(from, failed) || !fs::is_directory(from, failed)) return take_file(name);
    if (is_build_folder(from.string())) return {};
    for (fs::directory_iterator at(from, failed), end; !failed && at != end; at.increment(failed)) {
      if (is_left_out(at->path())) continue;
      const std::string below = (fs::path(name) / at->path().filename()).string();
      if (auto taken = take(below); !taken) return taken.error();
    }
    return failed ? Result<void>(cannot_read(from, failed)) : Result<void>();
  }

 private:
  static Error cannot_read(const fs::path& path, const std::error_code& failed) {
    return usage_error("cannot copy the sources: " + failed.message(), printable(path.string()));
  }

  Result<void> take_file(const std::string& name) {
    const fs::path from = fs::path(root_) / name, to = fs::path(to_) / name;
    std::error_code failed;
    const bool is_link = fs::is_symlink(from, failed);
    if (!is_link && !fs::is_regular_file(from, failed)) return {};  // a socket, or just gone
    const uint64_t size = is_link ? 0 : fs::file_size(from, failed);
    if (failed) return {};
    if (left_.files == 0 || left_.bytes < size)
      return usage_error("the sources are too many to be copied", printable(root_),
                         "put what is built or downloaded into folders that git ignores");
    --left_.files;
    left_.bytes -= size;
    fs::create_directories(to.parent_path(), failed);
    if (is_link)
      fs::copy_symlink(from, to, failed);
    else
      fs::copy_file(from, to, fs::copy_options::overwrite_existing, failed);
    return failed ? Result<void>(cannot_read(from, failed)) : Result<void>();
  }

  const std::string root_, to_;
  CopyLimits left_;
};

// A repository without a work tree of its own history: it reads the objects of the other one.
Result<void> borrow_repository(const Sources& tree, const std::string& to, Launcher& launcher) {
  const std::string format =
      line_of(git_says(tree.root, {"rev-parse", "--show-object-format"}, "", launcher));
  std::vector<std::string> init = {"init", "--quiet", "--template="};
  if (!format.empty()) init.push_back("--object-format=" + format);
  init.push_back(to);
  if (auto made = git_says(tree.root, init, "cannot make a copy of the repository", launcher);
      !made)
    return made.error();
  const std::string objects = line_of(git_says(
      tree.root, {"rev-parse", "--path-format=absolute", "--git-path", "objects"}, "", launcher));
  const std::string shallow = line_of(git_says(
      tree.root, {"rev-parse", "--path-format=absolute", "--git-path", "shallow"}, "", launcher));
  std::error_code ignored;
  fs::create_directories(to + "/.git/objects/info", ignored);
  if (auto written = write_file(to + "/.git/objects/info/alternates", objects + "\n"); !written)
    return written.error();
  if (fs::exists(shallow, ignored)) fs::copy_file(shallow, to + "/.git/shallow", ignored);
  // Builds ask `git describe` for a version.
  const auto tags = git_says(
      tree.root, {"for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"}, "", launcher);
  return tags && !tags->empty() ? write_file(to + "/.git/packed-refs", *tags) : Result<void>();
}

// Inside of another repository git would skip what that one does not have.
Result<void> apply(const std::string& copy, const std::string& file, Launcher& launcher) {
  const ProcessResult applied =
      git(copy, {"apply", "--binary", "--whitespace=nowarn", file}, launcher,
          {{"GIT_CEILING_DIRECTORIES", fs::path(copy).parent_path().string()}});
  if (went_well(applied)) return {};
  if (applied.end == ProcessResult::End::cancelled) return internal_error("stopped");
  return usage_error("the patch does not apply: " + last_words(applied), "",
                     "it must be a unified diff against the sources as they are, with paths from "
                     "the root of the repository, as `git diff` writes it");
}

Result<void> copy_changes(const Sources& tree, const std::string& to, Launcher& launcher) {
  const std::string file = to + ".changes";
  const auto diff = git_says(tree.root,
                             {"diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv",
                              "--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/",
                              "--output=" + file, tree.commit, "--"},
                             "cannot see what was not committed", launcher);
  if (!diff) return diff.error();
  std::error_code ignored;
  if (fs::file_size(file, ignored) == 0) return {};
  auto done = apply(to, file, launcher);
  fs::remove(file, ignored);
  return done;
}

// Folders that belong to other repositories, as this one has them checked out.
std::vector<std::string> submodules_of(const Sources& tree, Launcher& launcher) {
  std::vector<std::string> paths;
  const auto listed = git_says(tree.root, {"ls-files", "--stage", "-z"}, "", launcher);
  if (!listed) return paths;
  for (const std::string& entry : split(*listed, '\0'))
    if (const size_t tab = entry.find('\t'); entry.starts_with("160000 ") && tab != entry.npos)
      paths.push_back(entry.substr(tab + 1));
  return paths;
}

bool is_in_build_folder(const Sources& tree, const std::string& name) {
  for (fs::path folder = fs::path(name).parent_path(); !folder.empty();
       folder = folder.parent_path())
    if (is_left_out(folder) || is_build_folder((fs::path(tree.root) / folder).string()))
      return true;
  return false;
}

Result<void> copy_others(const Sources& tree, const std::string& to, const CopyLimits& limits,
                         Launcher& launcher) {
  PlainCopy copy(tree, to, limits);
  const auto listed = git_says(tree.root, {"ls-files", "--others", "--exclude-standard", "-z"},
                               "cannot see which files are new", launcher);
  if (!listed) return listed.error();
  for (const std::string& name : split(*listed, '\0'))
    if (!name.empty() && !is_in_build_folder(tree, name))
      if (auto taken = copy.take(name); !taken) return taken.error();
  return {};
}

Result<void> copy_submodules(const Sources& tree, const std::string& to, Launcher& launcher) {
  PlainCopy copy(tree, to, {});
  for (const std::string& path : submodules_of(tree, launcher))
    if (auto taken = copy.take(path); !taken) return taken.error();
  return {};
}

}  // namespace

bool has_submodules(const Sources& tree, Launcher& launcher) {
  return !submodules_of(tree, launcher).empty();
}

bool is_build_folder(const std::string& folder) {
  std::error_code ignored;
  for (const char* name : {"/CMakeCache.txt", "/meson-private", "/CMakeFiles"})
    if (fs::exists(folder + name, ignored) && !fs::exists(folder + "/CMakeLists.txt", ignored))
      return true;
  return false;
}

Sources source_tree_of(const std::string& folder, Launcher& launcher) {
  Sources tree;
  const std::string root =
      line_of(git_says(folder, {"rev-parse", "--show-toplevel"}, "", launcher));
  if (!root.empty())
    tree.commit = line_of(
        git_says(root, {"rev-parse", "--verify", "--quiet", "HEAD^{commit}"}, "", launcher));
  tree.is_git = !tree.commit.empty();
  tree.root = tree.is_git ? root : folder;
  if (tree.is_git) {
    const auto status =
        git_says(root,
                 {"status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all",
                  "--", ".", ":(exclude,glob)**/.unflake/**"},
                 "", launcher);
    tree.is_dirty = status && !status->empty();
  }
  return tree;
}

Result<std::string> commit_named(const Sources& tree, const std::string& revision,
                                 Launcher& launcher) {
  if (!tree.is_git)
    return usage_error("the sources are not in a git repository", printable(tree.root),
                       "give the change as a file with --patch");
  const auto said = git_says(
      tree.root, {"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"},
      "", launcher);
  if (const std::string commit = line_of(said); !commit.empty()) return commit;
  return usage_error("there is no commit " + shell_quote(printable(revision)), printable(tree.root),
                     "name a commit, a branch or a tag that is here; a shallow clone has few");
}

Result<void> copy_commit(const Sources& tree, const std::string& commit, const std::string& to,
                         Launcher& launcher) {
  if (auto made = borrow_repository(tree, to, launcher); !made) return made.error();
  const auto out = git_says(to, {"checkout", "--quiet", "--detach", commit},
                            "cannot check out " + commit, launcher);
  if (!out) return out.error();
  return copy_submodules(tree, to, launcher);
}

Result<void> go_to_commit(const std::string& copy, const std::string& commit, bool clean,
                          Launcher& launcher) {
  const auto out = git_says(copy, {"checkout", "--quiet", "--detach", "--force", commit},
                            "cannot check out " + commit, launcher);
  if (!out) return out.error();
  if (!clean) return {};
  const auto cleaned = git_says(copy, {"clean", "--quiet", "-d", "--force", "-x"},
                                "cannot remove what was built", launcher);
  return cleaned ? Result<void>() : Result<void>(cleaned.error());
}

Result<std::vector<ListedCommit>> commits_between(const Sources& tree, const std::string& from,
                                                  const std::string& to, Launcher& launcher) {
  const auto first = commit_named(tree, from, launcher);
  if (!first) return first.error();
  const auto last = commit_named(tree, to, launcher);
  if (!last) return last.error();
  const auto listed = git_says(
      tree.root, {"log", "--first-parent", "--reverse", "--format=%H %s", *first + ".." + *last},
      "cannot list the commits", launcher);
  if (!listed) return listed.error();
  std::vector<ListedCommit> commits{{*first, ""}};
  for (const std::string_view line : split_lines(*listed))
    if (const size_t space = line.find(' '); space != line.npos)
      commits.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1))});
  if (const auto base = git(tree.root, {"merge-base", "--is-ancestor", *first, *last}, launcher);
      !went_well(base) || commits.size() < 2)
    return usage_error(fmt::format("{} is not an ancestor of {}", shell_quote(printable(from)),
                                   shell_quote(printable(to))),
                       printable(tree.root),
                       "name an older commit at which the test holds, then a newer one at which "
                       "it is flaky: --bisect v1.2..HEAD");
  return commits;
}

Result<void> copy_tree(const Sources& tree, const std::string& to, Launcher& launcher,
                       const CopyLimits& limits) {
  if (!tree.is_git) {
    std::error_code ignored;
    fs::create_directories(to, ignored);
    return PlainCopy(tree, to, limits).take("");
  }
  if (auto copied = copy_commit(tree, tree.commit, to, launcher); !copied) return copied.error();
  if (!tree.is_dirty) return {};
  if (auto changed = copy_changes(tree, to, launcher); !changed) return changed.error();
  return copy_others(tree, to, limits, launcher);
}

Result<void> apply_patch(const std::string& copy, const std::string& patch, Launcher& launcher) {
  if (trim(patch).empty())
    return usage_error("the patch is empty", "", "`git diff > FILE` writes one");
  const std::string file = copy + ".patch";
  if (auto written = write_file(file, patch.ends_with('\n') ? patch : patch + "\n"); !written)
    return written.error();
  auto done = apply(copy, file, launcher);
  std::error_code ignored;
  fs::remove(file, ignored);
  return done;
}

Result<std::string> diff_between(const Sources& tree, const std::string& from,
                                 const std::string& to, Launcher& launcher) {
  return git_says(tree.root,
                  {"diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv",
                   "--src-prefix=a/", "--dst-prefix=b/", from, to, "--"},
                  "cannot compare the two commits", launcher);
}

}  // namespace unflake
