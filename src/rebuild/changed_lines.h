#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace unflake {

// A unified diff, line by line: what became of the lines of the files that it changes.
class LineChanges {
 public:
  explicit LineChanges(std::string_view diff);

  // 0: the patch removes or edits it. The file is known by as much of its path as both have.
  int line_after(const std::string& file, int line) const;
  // Where a line of this text was added, in the file as it is with the patch; 0: nowhere.
  int added_at(const std::string& file, std::string_view text) const;
  bool touches(const std::string& file) const { return find(file) != nullptr; }
  std::vector<std::string> files() const;

 private:
  struct Hunk {
    int old_start = 0, old_count = 0, new_start = 0, new_count = 0;
    std::map<int, int> kept;  // old line -> new line, of the lines around the changes
  };
  struct File {
    std::string old_name, new_name;
    std::vector<Hunk> hunks;
    std::vector<std::pair<int, std::string>> added;
  };
  const File* find(const std::string& file) const;

  std::vector<File> files_;
};

// What a patch does to the check that failed.
struct CheckAfter {
  enum class State { not_known, kept, changed };
  State state = State::not_known;
  int line = 0;      // kept: where it is now
  std::string text;  // changed: what it was
};

// A check may span lines: all of them, from its first to the one with its semicolon. `lines` are
// those of the file without the patch.
CheckAfter check_after(const LineChanges& changes, const std::string& file, int line,
                       const std::vector<std::string>& lines);

}  // namespace unflake
