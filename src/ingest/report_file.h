#pragma once

#include <string>

#include "history/lifecycle.h"
#include "ingest/byte_source.h"
#include "util/unique_fd.h"

namespace unflake {

// A report that can be read more than once: its contents have to be known by their hash before the
// first run is recorded.
class ReportFile {
 public:
  static Result<ReportFile> open(const std::string& path);
  // Of what can be read once only: a copy in the folder for temporary files, which has no name and
  // goes with the last descriptor. `most` bounds it.
  static Result<ReportFile> copy_of(const ByteSource& source, const std::string& name,
                                    uint64_t most = UINT64_MAX);

  const std::string& name() const { return name_; }
  const std::string& hash() const { return hash_; }  // SHA-256 of the contents
  TimePoint modified() const { return modified_; }
  uint64_t size() const { return size_; }
  // From the beginning. One at a time.
  Result<ByteSource> bytes() const;

 private:
  Result<void> inspect();
  UniqueFd fd_;
  std::string name_, hash_;
  TimePoint modified_;
  uint64_t size_ = 0;
};

}  // namespace unflake
