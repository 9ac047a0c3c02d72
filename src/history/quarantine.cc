#include "history/quarantine.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "history/quarantine_text.h"

namespace unflake {
namespace {

auto order_of(const QuarantineEntry& entry) {
  return std::tie(entry.test, entry.signature);
}

bool comes_before(const QuarantineEntry& a, const QuarantineEntry& b) {
  return order_of(a) < order_of(b);
}

struct ByTest {
  bool operator()(const QuarantineEntry& entry, const TestId& test) const {
    return entry.test < test;
  }
  bool operator()(const TestId& test, const QuarantineEntry& entry) const {
    return test < entry.test;
  }
};

constexpr std::string_view first_lines =
    "# Failures that are known: their tests run, and fail no build up to the day of `expires`.\n"
    "# `unflake quarantine --help` says more.\n"
    "format = 1\n";

std::string with_line_end(std::string text) {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text;
}

std::string spliced(std::string_view text, size_t from, size_t to, const std::string& with) {
  return std::string(text.substr(0, from)) + with + std::string(text.substr(to));
}

std::string appended(std::string text, const std::string& block) {
  text = with_line_end(std::move(text));
  if (text.empty()) text = first_lines;
  return text + "\n" + block;
}

// What was written must say what was meant, whatever was in the file and in the entry.
Result<std::string> checked(std::string text, const std::string& path,
                            const QuarantineEntry& entry) {
  const auto written = parse_quarantine(text, path);
  if (!written) return written.error();
  const QuarantineEntry* found = written->find(entry.test, entry.signature);
  if (found && found->expires == entry.expires) return text;
  return usage_error("the test cannot be named in the quarantine: its name is no valid text", path,
                     "rename the test");
}

}  // namespace

Quarantine::Quarantine(std::vector<QuarantineEntry> entries) : entries_(std::move(entries)) {
  std::ranges::sort(entries_, comes_before);
}

std::span<const QuarantineEntry> Quarantine::of(const TestId& test) const {
  const auto [first, last] = std::equal_range(entries_.begin(), entries_.end(), test, ByTest());
  return {first, last};
}

const QuarantineEntry* Quarantine::find(const TestId& test, std::string_view signature) const {
  for (const QuarantineEntry& entry : of(test))
    if (entry.signature == signature) return &entry;
  return nullptr;
}

std::optional<TestId> test_id_from(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
    return std::nullopt;
  return TestId{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

Result<Quarantine> parse_quarantine(std::string_view text, const std::string& path) {
  auto blocks = read_quarantine_blocks(text, path);
  if (!blocks) return blocks.error();
  std::vector<QuarantineEntry> entries;
  for (QuarantineBlock& block : *blocks) entries.push_back(std::move(block.entry));
  return Quarantine(std::move(entries));
}

Result<std::string> with_entry(std::string_view text, const std::string& path,
                               const QuarantineEntry& entry) {
  const auto blocks = read_quarantine_blocks(text, path);
  if (!blocks) return blocks.error();
  const std::string block = quarantine_block_text(entry);
  const auto same = std::ranges::find_if(
      *blocks, [&](const QuarantineBlock& old) { return order_of(old.entry) == order_of(entry); });
  if (same != blocks->end()) {
    if (same->entry == entry) return std::string(text);
    return checked(spliced(text, same->header, same->end, block), path, entry);
  }
  const auto next = std::ranges::find_if(
      *blocks, [&](const QuarantineBlock& old) { return comes_before(entry, old.entry); });
  if (next != blocks->end())
    return checked(spliced(text, next->begin, next->begin, block + "\n"), path, entry);
  return checked(appended(std::string(text), block), path, entry);
}

Result<std::string> without_entries(std::string_view text, const std::string& path,
                                    const std::function<bool(const QuarantineEntry&)>& goes) {
  const auto blocks = read_quarantine_blocks(text, path);
  if (!blocks) return blocks.error();
  std::string left;
  size_t kept_up_to = 0;
  for (const QuarantineBlock& block : *blocks) {
    if (!goes(block.entry)) continue;
    left += text.substr(kept_up_to, block.begin - kept_up_to);
    kept_up_to = std::min(text.find_first_not_of("\r\n", block.end), text.size());
  }
  if (kept_up_to == 0) return std::string(text);
  left += text.substr(kept_up_to);
  if (kept_up_to == text.size())
    while (left.ends_with("\n\n")) left.pop_back();
  return left;
}

}  // namespace unflake
