#pragma once

#include <string>

#include "model/executed.h"
#include "report/layout.h"

namespace unflake {

std::string training_text(const TrainingReport& report, const Style& style);
std::string training_json(const TrainingReport& report);

}  // namespace unflake
