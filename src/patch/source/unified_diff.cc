#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "patch/literals/time_literal.h"
#include "patch/source/source_unit.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t context = 3;

// Whole lines that change, counted from 0; `end` is one past the last.
struct ChangedLines {
  size_t begin = 0, end = 0;
  std::string new_text;
};

Error at(const std::string& what, const SourceEdit& edit, const std::string& next = "") {
  return usage_error(what, fmt::format("{}:{}", printable(edit.file), edit.line), next);
}

// In the order of the file, each place once.
Result<std::vector<SourceEdit>> in_order(std::vector<SourceEdit> edits) {
  std::stable_sort(edits.begin(), edits.end(), [](const SourceEdit& a, const SourceEdit& b) {
    return std::tuple(a.offset, !a.old_text.empty()) < std::tuple(b.offset, !b.old_text.empty());
  });
  std::vector<SourceEdit> kept;
  for (SourceEdit& edit : edits) {
    const bool agrees = std::any_of(kept.begin(), kept.end(), [&](const SourceEdit& other) {
      return std::tie(edit.offset, edit.old_text, edit.new_text) ==
             std::tie(other.offset, other.old_text, other.new_text);
    });
    if (agrees) continue;
    const bool overlaps =
        !kept.empty() && edit.offset < kept.back().offset + kept.back().old_text.size();
    if (overlaps)
      return at(fmt::format("two changes contradict each other here: `{}` and `{}`",
                            printable(kept.back().new_text), printable(edit.new_text)),
                edit, "take one of them");
    kept.push_back(std::move(edit));
  }
  return kept;
}

Result<void> check(const std::string& text, const std::vector<SourceEdit>& edits) {
  for (const SourceEdit& edit : edits)
    if (edit.offset > text.size() ||
        text.compare(edit.offset, edit.old_text.size(), edit.old_text) != 0)
      return at("the file has changed since it was looked at", edit, "look again");
  return {};
}

// Of lines with their ends.
class SourceLines {
 public:
  explicit SourceLines(const std::string& text) : text_(text), starts_(line_starts(text)) {}

  size_t count() const { return text_.empty() ? 0 : starts_.size(); }
  size_t begin(size_t line) const { return line < starts_.size() ? starts_[line] : text_.size(); }
  std::string piece(size_t from, size_t to) const { return between(begin(from), begin(to)); }
  std::string between(size_t from, size_t to) const { return text_.substr(from, to - from); }
  size_t line_of(size_t offset) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    return static_cast<size_t>(after - starts_.begin()) - 1;
  }

 private:
  const std::string& text_;
  std::vector<size_t> starts_;
};

// What is put in before or after a line does not change that line.
void leave_equal_lines(const SourceLines& lines, ChangedLines& change) {
  while (change.begin < change.end) {
    const std::string line = lines.piece(change.begin, change.begin + 1);
    if (!line.ends_with('\n') || !change.new_text.starts_with(line)) break;
    change.new_text.erase(0, line.size());
    ++change.begin;
  }
  while (change.begin < change.end) {
    const std::string line = lines.piece(change.end - 1, change.end);
    const size_t kept = change.new_text.size() - line.size();
    const bool is_whole =
        change.new_text.ends_with(line) && (kept == 0 || change.new_text[kept - 1] == '\n');
    if (!is_whole) break;
    change.new_text.resize(kept);
    --change.end;
  }
}

std::vector<ChangedLines> changed_lines(const SourceLines& lines,
                                        const std::vector<SourceEdit>& edits) {
  std::vector<ChangedLines> changes;
  size_t done = 0;  // in the old text, up to where the last change is written
  for (const SourceEdit& edit : edits) {
    const size_t first = lines.line_of(edit.offset);
    const size_t last = edit.offset + std::max<size_t>(edit.old_text.size(), 1) - 1;
    const size_t end = lines.line_of(last) + 1;
    if (changes.empty() || first >= changes.back().end) {
      if (!changes.empty())
        changes.back().new_text += lines.between(done, lines.begin(changes.back().end));
      changes.push_back({first, end, ""});
      done = lines.begin(first);
    }
    changes.back().end = std::max(changes.back().end, end);
    changes.back().new_text += lines.between(done, edit.offset) + edit.new_text;
    done = edit.offset + edit.old_text.size();
  }
  changes.back().new_text += lines.between(done, lines.begin(changes.back().end));
  for (ChangedLines& change : changes) leave_equal_lines(lines, change);
  return changes;
}

// Each line with its mark; one that ends without a line feed says so.
std::string marked(char mark, const std::string& text) {
  std::string lines;
  size_t at = 0;
  while (at < text.size()) {
    const size_t feed = text.find('\n', at);
    const size_t end = feed == std::string::npos ? text.size() : feed;
    lines += mark;
    lines.append(text, at, end - at);
    lines += feed == std::string::npos ? "\n\\ No newline at end of file\n" : "\n";
    at = end + 1;
  }
  return lines;
}

size_t count_lines(const std::string& text) {
  return text.empty() ? 0 : line_starts(text).size();
}

std::string range(size_t first, size_t count) {
  return count == 1 ? fmt::format("{}", first + 1)
                    : fmt::format("{},{}", count == 0 ? first : first + 1, count);
}

// Changes from `first` on that are near enough to share their context.
std::string hunk(const SourceLines& lines, std::span<const ChangedLines> changes, int64_t& shift) {
  const size_t from = changes.front().begin - std::min(context, changes.front().begin);
  const size_t to = std::min(lines.count(), changes.back().end + context);
  std::string body;
  size_t done = from, added = 0, removed = 0;
  for (const ChangedLines& change : changes) {
    body += marked(' ', lines.piece(done, change.begin));
    body += marked('-', lines.piece(change.begin, change.end)) + marked('+', change.new_text);
    added += count_lines(change.new_text);
    removed += change.end - change.begin;
    done = change.end;
  }
  body += marked(' ', lines.piece(done, to));
  const size_t count = to - from;
  const auto new_from = static_cast<size_t>(static_cast<int64_t>(from) + shift);
  shift += static_cast<int64_t>(added) - static_cast<int64_t>(removed);
  return fmt::format("@@ -{} +{} @@\n{}", range(from, count),
                     range(new_from, count + added - removed), body);
}

std::string hunks(const SourceLines& lines, const std::vector<ChangedLines>& changes) {
  std::string all;
  int64_t shift = 0;
  for (size_t first = 0; first < changes.size();) {
    size_t end = first + 1;
    while (end < changes.size() && changes[end].begin <= changes[end - 1].end + 2 * context) ++end;
    all += hunk(lines, std::span(changes).subspan(first, end - first), shift);
    first = end;
  }
  return all;
}

Result<std::string> name_below(const std::string& file, const std::string& root) {
  const std::string name = path_below(file, root);
  if (name.empty() || name == ".")
    return usage_error("the file is not below the folder that the patch is for", printable(file),
                       "apply the change by hand");
  if (name.find_first_of("\n\r\t\"\\") != std::string::npos)
    return usage_error("a file of this name cannot stand in a patch", printable(file));
  return name;
}

// `patch` takes what follows a space for a date, unless a tab ends the name.
std::string end_of_name(const std::string& name) {
  return name.find(' ') == std::string::npos ? "" : "\t";
}

Result<std::string> diff_of_file(const std::string& file, std::vector<SourceEdit> edits,
                                 const std::string& root) {
  const auto name = name_below(file, root);
  if (!name) return name.error();
  const auto text = read_source(file);
  if (!text) return text.error();
  const auto ordered = in_order(std::move(edits));
  if (!ordered) return ordered.error();
  if (auto checked = check(*text, *ordered); !checked) return checked.error();
  const SourceLines lines(*text);
  return fmt::format("--- a/{0}{1}\n+++ b/{0}{1}\n{2}", *name, end_of_name(*name),
                     hunks(lines, changed_lines(lines, *ordered)));
}

Result<std::string> diff_of_new_file(const NewSource& source, const std::string& root) {
  const auto name = name_below(source.file, root);
  if (!name) return name.error();
  return fmt::format("--- /dev/null\n+++ b/{}{}\n@@ -0,0 +{} @@\n{}", *name, end_of_name(*name),
                     range(0, count_lines(source.text)), marked('+', source.text));
}

}  // namespace

Result<std::string> edited_text(const std::string& text, std::vector<SourceEdit> edits) {
  const auto ordered = in_order(std::move(edits));
  if (!ordered) return ordered.error();
  if (auto checked = check(text, *ordered); !checked) return checked.error();
  std::string edited;
  size_t done = 0;
  for (const SourceEdit& edit : *ordered) {
    edited += text.substr(done, edit.offset - done) + edit.new_text;
    done = edit.offset + edit.old_text.size();
  }
  return edited + text.substr(done);
}

Result<std::string> unified_diff(const std::vector<SourceEdit>& edits, const std::string& root,
                                 const std::vector<NewSource>& new_files) {
  std::map<std::string, std::vector<SourceEdit>> files;
  for (const SourceEdit& edit : edits)
    if (edit.old_text != edit.new_text) files[real_path(edit.file)].push_back(edit);
  std::string diff;
  for (auto& [file, changes] : files) {
    const auto one = diff_of_file(file, std::move(changes), real_path(root));
    if (!one) return one.error();
    diff += *one;
  }
  for (const NewSource& source : new_files) {
    const auto one = diff_of_new_file(source, real_path(root));
    if (!one) return one.error();
    diff += *one;
  }
  return diff;
}

}  // namespace unflake
