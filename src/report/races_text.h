#pragma once

#include <string>

#include "model/race_report.h"
#include "report/layout.h"

namespace unflake {

std::string races_text(const RaceReport& report, const Style& style);

// docs/formats.md describes the members.
std::string races_json(const RaceReport& report);

}  // namespace unflake
