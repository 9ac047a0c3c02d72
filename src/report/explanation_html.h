#pragma once

#include <string>

#include "report/explanation_words.h"

namespace unflake {

// An explanation as one HTML file that needs nothing else: no script, no network, light and dark.
std::string explanation_html(const ExplanationReport& report);

}  // namespace unflake
