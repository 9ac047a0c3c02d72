#include "lifecycle/quarantine.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <map>

#include "model/outcome.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int64_t newest_format = 1;
constexpr size_t longest_file = 16 << 20;
constexpr const char* fix_file =
    "fix the file; `unflake quarantine --help` shows what an entry has";

std::string place(const std::string& path, const toml::source_position& at) {
  return fmt::format("{}, line {}, column {}", path, at.line, at.column);
}

std::optional<Error> find_conflict(std::string_view text, const std::string& path) {
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (!line.starts_with("<<<<<<<") && !line.starts_with(">>>>>>>")) continue;
    return usage_error("the quarantine has conflicting edits that were not resolved",
                       fmt::format("{}, line {}", path, number),
                       "keep the [[test]] blocks of both sides and delete the lines that git put "
                       "around them");
  }
  return std::nullopt;
}

// Where each line begins, and where the text ends.
std::vector<size_t> line_starts(std::string_view text) {
  std::vector<size_t> starts{0};
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') starts.push_back(i + 1);
  starts.push_back(text.size());
  return starts;
}

class EntryReader {
 public:
  EntryReader(const toml::table& table, const std::string& path) : table_(table), path_(path) {}

  Result<QuarantineEntry> read() {
    QuarantineEntry entry;
    std::string id;
    text("id", id, true);
    text("signature", entry.signature, true);
    text("failure", entry.failure);
    text("reason", entry.reason);
    text("owner", entry.owner);
    text("issue", entry.issue);
    day("since", entry.since);
    day("expires", entry.expires);
    text("commit", entry.commit);
    check_unknown();
    if (!error_) check(entry, id);
    if (error_) return *error_;
    return entry;
  }

 private:
  void text(const char* key, std::string& value, bool required = false) {
    known_.push_back(key);
    const toml::node* node = table_.get(key);
    if (!node && required)
      complain(fmt::format("an entry has no '{}'", key), table_);
    else if (node && !node->is_string())
      complain(fmt::format("'{}' must be a text in quotes", key), *node);
    else if (node)
      value = *node->value_exact<std::string>();
  }

  void day(const char* key, Day& value) {
    known_.push_back(key);
    const toml::node* node = table_.get(key);
    if (!node) return complain(fmt::format("an entry has no '{}'", key), table_);
    const auto found = day_in(*node);
    if (!found) return complain(fmt::format("'{}' must be a day like 2026-03-31", key), *node);
    value = *found;
  }

  static std::optional<Day> day_in(const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) return parse_day(*text);
    const auto date = node.value_exact<toml::date>();
    if (!date) return std::nullopt;
    return parse_day(fmt::format("{:04}-{:02}-{:02}", date->year, date->month, date->day));
  }

  void check_unknown() {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::ranges::find(known_, name) != known_.end()) continue;
      const auto near = nearest(name, known_, 1);
      complain(fmt::format("an entry has no key '{}'", printable(shorten(name, 100))), node,
               near.empty() ? fmt::format("known are: {}", join(known_, ", "))
                            : fmt::format("did you mean '{}'?", near[0]));
    }
  }

  void check(QuarantineEntry& entry, const std::string& id) {
    const auto test = test_id_from(id);
    if (!test) return complain("'id' must be target:name", *table_.get("id"));
    entry.test = *test;
    if (!is_signature(entry.signature))
      return complain("'signature' must be the 16 hexadecimal digits of a failure",
                      *table_.get("signature"), "`unflake history TEST` lists the signatures");
    if (entry.expires < entry.since)
      complain("the entry expires before it began", *table_.get("expires"));
  }

  void complain(std::string what, const toml::node& node, std::string next = fix_file) {
    if (!error_)
      error_ = usage_error(std::move(what), place(path_, node.source().begin), std::move(next));
  }

  const toml::table& table_;
  const std::string& path_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

class FileReader {
 public:
  FileReader(std::string_view text, const std::string& path)
      : text_(text), path_(path), starts_(line_starts(text)) {}

  Result<std::vector<QuarantineBlock>> read(const toml::table& root) {
    if (const auto error = check_top(root)) return *error;
    const toml::node* tests = root.get("test");
    std::vector<QuarantineBlock> blocks;
    if (!tests) return blocks;
    if (!tests->is_array_of_tables()) return not_a_block(*tests);
    for (const toml::node& node : *tests->as_array()) {
      const toml::table& table = *node.as_table();
      if (table.is_inline()) return not_a_block(node);
      auto entry = EntryReader(table, path_).read();
      if (!entry) return entry.error();
      if (const auto error = check_twice(*entry, table)) return *error;
      blocks.push_back(block_of(std::move(*entry), table));
    }
    return blocks;
  }

 private:
  std::optional<Error> check_top(const toml::table& root) const {
    for (const auto& [key, node] : root)
      if (key != "format" && key != "test")
        return usage_error(
            fmt::format("there is no setting '{}' here", printable(shorten(key.str(), 100))),
            place(path_, node.source().begin), "write entries as [[test]]");
    const toml::node* format = root.get("format");
    if (!format) return std::nullopt;
    const auto number = format->value_exact<int64_t>();
    if (number && *number >= 1 && *number <= newest_format) return std::nullopt;
    if (number && *number > newest_format)
      return usage_error(fmt::format("the quarantine has format {}, this unflake knows {}", *number,
                                     newest_format),
                         place(path_, format->source().begin), "use a newer unflake");
    return usage_error("'format' must be 1", place(path_, format->source().begin));
  }

  Error not_a_block(const toml::node& node) const {
    return usage_error("write entries as [[test]]", place(path_, node.source().begin), fix_file);
  }

  std::optional<Error> check_twice(const QuarantineEntry& entry, const toml::table& table) {
    const auto line = table.source().begin.line;
    const auto [found, is_new] = lines_.try_emplace({to_string(entry.test), entry.signature}, line);
    if (is_new) return std::nullopt;
    return usage_error(
        fmt::format("signature {} of {} is here twice; first in line {}", entry.signature,
                    printable(to_string(entry.test)), found->second),
        place(path_, table.source().begin), "keep one of the two");
  }

  size_t start_of(size_t line) const { return starts_[std::min(line, starts_.size()) - 1]; }

  bool is_comment(size_t line) const {
    const size_t begin = start_of(line);
    return trim(text_.substr(begin, start_of(line + 1) - begin)).starts_with('#');
  }

  QuarantineBlock block_of(QuarantineEntry entry, const toml::table& table) const {
    const size_t header = table.source().begin.line;
    size_t first = header, last = header;
    while (first > 1 && is_comment(first - 1)) --first;
    for (const auto& [key, node] : table)
      last = std::max<size_t>({last, key.source().end.line, node.source().end.line});
    return {std::move(entry), start_of(first), start_of(header), start_of(last + 1)};
  }

  std::string_view text_;
  const std::string& path_;
  std::vector<size_t> starts_;
  std::map<std::pair<std::string, std::string>, toml::source_index> lines_;
};

// What TOML wants escaped in a text between quotes, and what would confuse a reader.
std::string quoted(std::string_view text) {
  std::string escaped = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      escaped += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f)
      escaped += fmt::format("\\u{:04x}", byte);
    else
      escaped += c;
  }
  return escaped + "\"";
}

}  // namespace

Result<std::vector<QuarantineBlock>> read_quarantine_blocks(std::string_view text,
                                                            const std::string& path) {
  if (text.size() > longest_file)
    return usage_error("the quarantine is larger than 16 MiB", path, "is this the right file?");
  if (const auto conflict = find_conflict(text, path)) return *conflict;
  try {
    const toml::table root = toml::parse(text, path);
    return FileReader(text, path).read(root);
  } catch (const toml::parse_error& error) {
    return usage_error(fmt::format("not valid TOML: {}", printable(error.description())),
                       place(path, error.source().begin), fix_file);
  }
}

std::string quarantine_block_text(const QuarantineEntry& entry) {
  std::string text = "[[test]]\n";
  const auto add = [&](const char* key, std::string_view value) {
    if (!value.empty()) text += fmt::format("{} = {}\n", key, quoted(value));
  };
  add("id", to_string(entry.test));
  add("signature", entry.signature);
  add("failure", entry.failure);
  add("reason", entry.reason);
  add("owner", entry.owner);
  add("issue", entry.issue);
  text +=
      fmt::format("since = {}\nexpires = {}\n", format_day(entry.since), format_day(entry.expires));
  add("commit", entry.commit);
  return text;
}

}  // namespace unflake
