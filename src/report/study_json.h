#pragma once

#include <string>

#include "model/study_report.h"

namespace unflake {

// Every table's numbers, for programs; docs/formats.md describes it.
std::string study_json(const Study& study);

}  // namespace unflake
