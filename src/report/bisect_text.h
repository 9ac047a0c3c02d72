#pragma once

#include <string>

#include "model/detect_report.h"
#include "report/layout.h"

namespace unflake {

// Which commit introduced a flaky failure, and what that rests on.
std::string bisect_text(const BisectReport& report, const Style& style);
// docs/formats.md describes the members.
std::string bisect_json(const BisectReport& report);

}  // namespace unflake
