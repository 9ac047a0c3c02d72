#pragma once

#include <nlohmann/json_fwd.hpp>

#include "history/store.h"

namespace unflake {

// The two kinds of lines in a spill file. Reading throws nlohmann::json::exception for a line that
// is not what it should be.
nlohmann::json to_json(const SessionRecord& session);
nlohmann::json to_json(const RunRecord& run);
SessionRecord session_from(const nlohmann::json& line);
RunRecord run_from(const nlohmann::json& line);

bool is_session(const nlohmann::json& line);

}  // namespace unflake
