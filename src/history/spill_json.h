#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "history/store.h"

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

}  // namespace unflake
