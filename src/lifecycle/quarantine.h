#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

// A known failure of a test that does not fail builds for a while.
struct QuarantineEntry {
  TestId test;
  std::string signature;
  std::string failure;  // its headline, for whoever reviews the file
  std::string reason;
  std::string owner;
  std::string issue;  // a URL
  Day since{};
  Day expires{};  // the last day on which it holds
  std::string commit;

  bool has_expired(Day today) const { return today > expires; }
  bool operator==(const QuarantineEntry&) const = default;
};

// What a project's `.unflake/quarantine.toml` says, in the order of tests and signatures.
class Quarantine {
 public:
  Quarantine() = default;
  explicit Quarantine(std::vector<QuarantineEntry> entries);

  const std::vector<QuarantineEntry>& entries() const { return entries_; }
  std::span<const QuarantineEntry> of(const TestId& test) const;
  const QuarantineEntry* find(const TestId& test, std::string_view signature) const;

 private:
  std::vector<QuarantineEntry> entries_;
};

// The two halves of `target:name`; none when it has no colon.
std::optional<TestId> test_id_from(std::string_view text);

Result<Quarantine> parse_quarantine(std::string_view text, const std::string& path);

// A file that is missing says the same as an empty one.
Result<Quarantine> load_quarantine(const std::string& path);

// Edits of the file's text. What is not affected keeps its bytes: comments, order and blank lines
// are people's, and a small difference is what a review wants to see.
// Adds the entry, or replaces the one with its test and signature.
Result<std::string> with_entry(std::string_view text, const std::string& path,
                               const QuarantineEntry& entry);
Result<std::string> without_entries(std::string_view text, const std::string& path,
                                    const std::function<bool(const QuarantineEntry&)>& goes);

// Gives the new text for the old one. May be called again when the file changed in the meantime.
using QuarantineEdit = std::function<Result<std::string>(const std::string& text)>;

// Reads, edits and replaces the file while other processes that edit it wait.
Result<void> edit_quarantine(const std::string& path, const QuarantineEdit& edit);

// An entry and where it is in the text, in bytes.
struct QuarantineBlock {
  QuarantineEntry entry;
  size_t begin = 0;   // of the comment directly above it, or of its header
  size_t header = 0;  // of its `[[test]]`
  size_t end = 0;     // after the line of its last key
};

// The file's entries in its own order.
Result<std::vector<QuarantineBlock>> read_quarantine_blocks(std::string_view text,
                                                            const std::string& path);

// `[[test]]` and one key per line.
std::string quarantine_block_text(const QuarantineEntry& entry);

}  // namespace unflake
