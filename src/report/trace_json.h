#pragma once

#include <string>

#include "model/experiment.h"
#include "util/json.h"

namespace unflake {

// A run's outcome and its trace as one JSON object, described in docs/formats.md.
std::string trace_json(const Test& test, const ExperimentResult& result);

nlohmann::ordered_json code_notes_json(const std::vector<CodeNote>& notes);

}  // namespace unflake
