#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "history/store.h"
#include "util/unique_fd.h"

namespace unflake {

// Where runs go that the database does not take: JSON lines, the session first.
class SpillFile {
 public:
  explicit SpillFile(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // Makes the file at the first call, in the first of the folders that lets it.
  Result<void> append(const SessionRecord& session, const RunRecord& run);
  const std::string& path() const { return path_; }

 private:
  Result<void> create(const SessionRecord& session);
  Result<void> write_line(std::string line);

  std::vector<std::string> folders_;
  std::string path_;
  std::string session_;  // whose runs the last line began or continued
  UniqueFd file_;
};

// $XDG_STATE_HOME/unflake, ~/.local/state/unflake and the folder for temporary files.
std::vector<std::string> default_spill_folders();

}  // namespace unflake
