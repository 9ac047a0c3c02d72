#pragma once

#include <string>

#include "report/explanation_words.h"
#include "report/style.h"

namespace unflake {

// An explanation for a terminal, with the source lines that it speaks of.
std::string explanation_text(const ExplanationReport& report, const Style& style);

}  // namespace unflake
