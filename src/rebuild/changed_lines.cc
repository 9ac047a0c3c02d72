#include "rebuild/changed_lines.h"

#include <algorithm>
#include <charconv>

#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int most_lines_of_check = 20;

int number_at(std::string_view text, size_t& at) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  if (error != std::errc()) return -1;
  at = static_cast<size_t>(end - text.data());
  return number;
}

// "-12,3" or "-12".
bool read_range(std::string_view text, size_t& at, char sign, int& start, int& count) {
  if (at >= text.size() || text[at] != sign) return false;
  start = number_at(text, ++at);
  count = 1;
  if (at < text.size() && text[at] == ',') count = number_at(text, ++at);
  return start >= 0 && count >= 0;
}

// "a/src/x.cc\t2026-01-01" is "src/x.cc".
std::string name_in(std::string_view line) {
  line = line.substr(0, line.find('\t'));
  line = trim(line);
  if (line.size() > 2 && line.starts_with('"') && line.ends_with('"'))
    line = line.substr(1, line.size() - 2);
  if (line.starts_with("a/") || line.starts_with("b/")) line.remove_prefix(2);
  return line == "/dev/null" ? "" : std::string(line);
}

// Whether one path is the end of the other, by whole folders.
bool is_same_file(const std::string& one, const std::string& other) {
  if (one.empty() || other.empty()) return false;
  const std::string& longer = one.size() > other.size() ? one : other;
  const std::string& shorter = one.size() > other.size() ? other : one;
  return longer == shorter || longer.ends_with("/" + shorter);
}

}  // namespace

LineChanges::LineChanges(std::string_view diff) {
  std::string old_name;
  int old_line = 0, new_line = 0, old_left = 0, new_left = 0;
  for (std::string_view line : split_lines(diff)) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (old_left <= 0 && new_left <= 0) {
      if (line.starts_with("--- ")) {
        old_name = name_in(line.substr(4));
      } else if (line.starts_with("+++ ")) {
        files_.push_back({old_name, name_in(line.substr(4)), {}, {}});
      } else if (line.starts_with("@@ ") && !files_.empty()) {
        Hunk hunk;
        size_t at = 3;
        if (!read_range(line, at, '-', hunk.old_start, hunk.old_count)) continue;
        at = line.find('+', at);
        if (at == line.npos || !read_range(line, at, '+', hunk.new_start, hunk.new_count)) continue;
        old_line = hunk.old_start;
        new_line = hunk.new_start;
        old_left = hunk.old_count;
        new_left = hunk.new_count;
        files_.back().hunks.push_back(hunk);
      }
      continue;
    }
    const char kind = line.empty() ? ' ' : line[0];
    if (kind == '\\') continue;
    if (kind == ' ') files_.back().hunks.back().kept[old_line] = new_line;
    if (kind == '+') files_.back().added.emplace_back(new_line, trim(line.substr(1)));
    if (kind != '+') ++old_line, --old_left;
    if (kind != '-') ++new_line, --new_left;
  }
}

const LineChanges::File* LineChanges::find(const std::string& name) const {
  for (const File& file : files_)
    if (is_same_file(file.old_name, name)) return &file;
  // Sites and failures often have the name alone.
  const File* only = nullptr;
  for (const File& file : files_) {
    if (base_name(file.old_name) != base_name(name)) continue;
    if (only != nullptr) return nullptr;
    only = &file;
  }
  return only;
}

int LineChanges::line_after(const std::string& name, int line) const {
  const File* file = find(name);
  if (file == nullptr) return line;
  if (file->new_name.empty()) return 0;
  int shift = 0;
  for (const Hunk& hunk : file->hunks) {
    // A hunk without old lines stands after the line that it names.
    const int first = hunk.old_count == 0 ? hunk.old_start + 1 : hunk.old_start;
    if (line < first) break;
    if (line < first + hunk.old_count) {
      const auto kept = hunk.kept.find(line);
      return kept == hunk.kept.end() ? 0 : kept->second;
    }
    shift += hunk.new_count - hunk.old_count;
  }
  return line + shift;
}

int LineChanges::added_at(const std::string& name, std::string_view text) const {
  const File* file = find(name);
  if (file == nullptr || trim(text).empty()) return 0;
  for (const auto& [line, added] : file->added)
    if (added == trim(text)) return line;
  return 0;
}

std::vector<std::string> LineChanges::files() const {
  std::vector<std::string> names;
  for (const File& file : files_)
    names.push_back(file.new_name.empty() ? file.old_name : file.new_name);
  return names;
}

CheckAfter check_after(const LineChanges& changes, const std::string& file, int line,
                       const std::vector<std::string>& lines) {
  CheckAfter check;
  if (line <= 0) return check;
  if (!changes.touches(file)) return {CheckAfter::State::kept, line, ""};
  if (lines.empty()) return check;
  const auto text_at = [&](int number) {
    return number <= static_cast<int>(lines.size()) ? trim(lines[static_cast<size_t>(number) - 1])
                                                    : std::string_view();
  };
  int last = line;
  while (last < line + most_lines_of_check && last < static_cast<int>(lines.size()) &&
         text_at(last).find(';') == std::string_view::npos)
    ++last;
  for (int i = line; i <= last; ++i) {
    if (text_at(i).empty()) continue;
    int now = changes.line_after(file, i);
    if (now == 0) now = changes.added_at(file, text_at(i));  // indented, or moved as it is
    if (now == 0) return {CheckAfter::State::changed, 0, std::string(text_at(i))};
    if (i == line) check.line = now;
  }
  check.state = CheckAfter::State::kept;
  return check;
}

}  // namespace unflake
