#pragma once

#include <string>
#include <vector>

#include "model/executed.h"
#include "model/plan.h"
#include "report/explanation_words.h"
#include "util/json.h"

namespace unflake {

// A run's outcome and its trace as one JSON object, described in docs/formats.md.
std::string trace_json(const Test& test, const ExperimentResult& result,
                       const std::vector<Exposure>& exposed = {});

nlohmann::ordered_json code_notes_json(const std::vector<CodeNote>& notes);

// An explanation as one JSON object, described in docs/formats.md.
std::string explanation_json(const ExplanationReport& report);

}  // namespace unflake
