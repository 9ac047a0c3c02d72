#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "store/values.h"
#include "util/files.h"
#include "util/result.h"

namespace unflake {

// Fills the front of the span and returns how much; 0 is the end.
using ByteSource = std::function<Result<size_t>(std::span<char> into)>;

// The descriptor stays open and the caller's; `name` is for messages.
ByteSource bytes_of_descriptor(int fd, std::string name);

// The text has to outlive the source.
ByteSource bytes_of_text(std::string_view text);

// SHA-256, a piece at a time.
class ContentHash {
 public:
  ContentHash();
  void add(std::string_view bytes);
  // A text and where it ends, so that two neighbours cannot be confused with others.
  void add_field(std::string_view text);
  std::string hex() &&;

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

// A report that can be read more than once: its contents have to be known by their hash before the
// first run is recorded.
class ReportFile {
 public:
  static Result<ReportFile> open(const std::string& path);
  // For what can be read only once, such as a pipe: a copy.
  static Result<ReportFile> copy_of(const ByteSource& source, const std::string& name);

  const std::string& name() const { return name_; }
  const std::string& hash() const { return hash_; }  // SHA-256 of the contents
  TimePoint modified() const { return modified_; }
  uint64_t size() const { return size_; }
  // From the beginning. One at a time.
  Result<ByteSource> bytes() const;

 private:
  friend class ReportReceiver;
  Result<void> inspect();
  UniqueFd fd_;
  std::string name_, hash_;
  TimePoint modified_;
  uint64_t size_ = 0;
};

// Assembles a report that arrives in pieces, in the folder for temporary files. The file has no
// name there: it goes away with whoever holds it.
class ReportReceiver {
 public:
  explicit ReportReceiver(std::string name, uint64_t most_bytes = UINT64_MAX);
  Result<void> add(std::string_view bytes);
  ReportFile file() &&;

 private:
  Result<void> make_file();
  ReportFile file_;
  ContentHash hash_;
  const uint64_t most_bytes_;
};

}  // namespace unflake
