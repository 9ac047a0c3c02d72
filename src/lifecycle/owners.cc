#include "lifecycle/owners.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr size_t longest_owners_file = 3 << 20;  // what GitHub reads at most

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// The next word of a line: spaces end it unless they are escaped or in quotes.
std::string next_word(std::string_view& line) {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  std::string word;
  bool quoted = false;
  while (!line.empty() && (quoted || !is_blank(line.front()))) {
    const bool escapes = line.front() == '\\' && line.size() > 1;
    if (escapes) line.remove_prefix(1);
    if (!escapes && line.front() == '"')
      quoted = !quoted;
    else
      word += line.front();
    line.remove_prefix(1);
  }
  return word;
}

std::vector<std::string> owners_in(std::string_view line) {
  std::vector<std::string> owners;
  for (std::string word = next_word(line); !word.empty(); word = next_word(line)) {
    if (word.starts_with('#')) break;
    if (word.find('@') != std::string::npos) owners.push_back(std::move(word));
  }
  return owners;
}

// "[Name] @default", "^[Name]" and "[Name][2]" begin a section.
bool begins_section(std::string_view line) {
  if (line.starts_with('^')) line.remove_prefix(1);
  return line.starts_with('[') && line.find(']') != std::string_view::npos;
}

struct SectionHead {
  std::string name;
  std::vector<std::string> owners;
};

SectionHead section_head(std::string_view line) {
  const size_t open = line.find('['), close = line.find(']');
  SectionHead head{std::string(trim(line.substr(open + 1, close - open - 1))), {}};
  std::ranges::transform(head.name, head.name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  line.remove_prefix(line.rfind(']') + 1);
  head.owners = owners_in(line);
  return head;
}

// As components in which `**` means any number of them.
std::string normal_pattern(std::string pattern, bool anywhere) {
  const bool is_folder = pattern.ends_with('/');
  if (is_folder) pattern.pop_back();
  const bool has_slash = pattern.find('/') != std::string::npos;
  const bool anchored = pattern.starts_with('/') || (has_slash && !anywhere);
  if (pattern.starts_with('/')) pattern.erase(0, 1);
  if (!anchored && !pattern.starts_with("**/")) pattern = "**/" + pattern;
  if (is_folder) return pattern + "/*/**";
  const bool only_files = pattern == "*" || pattern.ends_with("/*");
  return only_files ? pattern : pattern + "/**";
}

// Greedy with one step back, as for `*` in a text: no pattern takes long.
bool components_match(const std::vector<std::string>& pattern,
                      const std::vector<std::string>& path) {
  size_t p = 0, i = 0, star = pattern.size(), resume = 0;
  while (i < path.size()) {
    if (p < pattern.size() && pattern[p] == "**") {
      star = p++;
      resume = i;
    } else if (p < pattern.size() && glob_match(pattern[p], path[i])) {
      ++p, ++i;
    } else if (star < pattern.size()) {
      p = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == "**") ++p;
  return p == pattern.size();
}

}  // namespace

Owners Owners::parse(std::string_view text) {
  Owners owners;
  std::map<std::string, size_t> sections{{"", 0}};
  size_t section = 0;
  std::vector<std::string> default_owners;
  const std::vector<std::string_view> lines = split_lines(text);
  const bool anywhere =
      std::ranges::any_of(lines, [](std::string_view line) { return begins_section(trim(line)); });
  for (const std::string_view raw : lines) {
    std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#') continue;
    if (begins_section(line)) {
      SectionHead head = section_head(line);
      section = sections.try_emplace(head.name, sections.size()).first->second;
      default_owners = std::move(head.owners);
      continue;
    }
    const bool excludes = line.front() == '!';
    if (excludes) line.remove_prefix(1);
    const std::string pattern = next_word(line);
    if (pattern.empty()) continue;
    Rule rule{normal_pattern(pattern, anywhere), owners_in(line), section, excludes};
    if (rule.owners.empty()) rule.owners = default_owners;
    owners.rules_.push_back(std::move(rule));
  }
  return owners;
}

bool Owners::matches(const Rule& rule, std::string_view path) {
  return components_match(split(rule.pattern, '/'), split(path, '/'));
}

std::vector<std::string> Owners::of(std::string_view path) const {
  std::map<size_t, const Rule*> deciding;  // by section
  for (const Rule& rule : rules_) {
    if (path.empty() || !matches(rule, path)) continue;
    const Rule*& last = deciding[rule.section];
    if (!last || !last->excludes) last = &rule;
  }
  std::vector<std::string> owners;
  for (const auto& [section, rule] : deciding)
    for (const std::string& owner : rule->owners)
      if (!rule->excludes && std::ranges::find(owners, owner) == owners.end())
        owners.push_back(owner);
  return owners;
}

Owners load_owners(const std::string& project_root) {
  for (const char* folder : {"", ".github/", ".gitlab/", "docs/"}) {
    std::ifstream file(project_root + "/" + folder + "CODEOWNERS");
    if (!file) continue;
    std::string text(longest_owners_file, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
    return Owners::parse(text);
  }
  return {};
}

std::string repository_path(const std::string& file, const std::string& project_root) {
  fs::path path = fs::path(file).lexically_normal();
  if (path.is_absolute()) path = path.lexically_relative(fs::path(project_root).lexically_normal());
  std::error_code ignored;
  const bool outside = path.empty() || *path.begin() == "..";
  if (!outside) return path.string();
  if (fs::path(file).is_absolute()) return "";
  // Compilers see files relative to a build folder: what comes after the way up counts when the
  // repository has it.
  fs::path rest;
  for (const fs::path& part : path)
    if (part != "..") rest /= part;
  return fs::exists(fs::path(project_root) / rest, ignored) ? rest.string() : "";
}

}  // namespace unflake
