#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>
#include "store/store.h"
#include "util/unique_fd.h"

namespace unflake {

// The lines of spill files and exports. Reading throws nlohmann::json::exception for a line that is
// not what it should be.
nlohmann::json to_json(const SessionRecord& session);
nlohmann::json to_json(const RunRecord& run);
SessionRecord session_from(const nlohmann::json& line);
RunRecord run_from(const nlohmann::json& line);

struct SuppressedFailure {
  TestId test;
  std::string signature;
};

nlohmann::json to_json(const SuppressedFailure& failure);
nlohmann::json to_json(const LifecycleEvent& event);
nlohmann::json to_json(const CauseRecord& cause);  // without its id, which is of one store only
SuppressedFailure suppressed_from(const nlohmann::json& line);
LifecycleEvent event_from(const nlohmann::json& line);
CauseRecord cause_from(const nlohmann::json& line);

// An export has these two around it, so that one that is not whole can be told from one that is.
nlohmann::json export_header(const std::string& project);
nlohmann::json export_end(int64_t sessions, int64_t runs);

enum class SpillLine { session, run, suppressed, event, cause, header, end, newer };
SpillLine kind_of(const nlohmann::json& line);

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
