#pragma once

#include <string>

#include "ingest/byte_source.h"
#include "ingest/content_hash.h"
#include "store/lifecycle_event.h"
#include "util/unique_fd.h"

namespace unflake {

// A report that can be read more than once: its contents have to be known by their hash before the
// first run is recorded.
class ReportFile {
 public:
  static Result<ReportFile> open(const std::string& path);
  // Of what can be read once only, such as a pipe: a copy.
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

// Puts a report together that comes in pieces, in the folder for temporary files. The file has no
// name there: it goes with whoever holds it.
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
