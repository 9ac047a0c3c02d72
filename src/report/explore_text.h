#pragma once

#include <string>

#include "model/explore_report.h"
#include "report/layout.h"

namespace unflake {

std::string explore_text(const ExploreReport& report, const Style& style);

// docs/formats.md describes the members.
std::string explore_json(const ExploreReport& report);

std::string races_text(const RaceReport& report, const Style& style);

// docs/formats.md describes the members.
std::string races_json(const RaceReport& report);

}  // namespace unflake
