#pragma once

#include <string>

#include "model/repro.h"
#include "report/explanation_words.h"

namespace unflake {

// How often the test fails at which delay, with 95 % intervals and the slack as a band. Empty when
// nothing was measured.
std::string dose_svg(const Repro& repro);

// An explanation as one HTML file that needs nothing else: no script, no network, light and dark.
std::string explanation_html(const ExplanationReport& report);

}  // namespace unflake
