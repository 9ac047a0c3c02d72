#include "app/changed_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include "lifecycle/owners.h"
#include "util/text.h"

namespace unflake {
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

  // None: git failed, or is not there.
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

// With what branched off meanwhile left out, when git can tell where that was.
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

  // None: nobody knows.
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
