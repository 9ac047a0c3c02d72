#pragma once

#include <string>

#include "report/explanation_words.h"

namespace unflake {

// An explanation as one JSON object, described in docs/formats.md.
std::string explanation_json(const ExplanationReport& report);

}  // namespace unflake
