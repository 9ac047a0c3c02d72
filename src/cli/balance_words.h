#pragma once

#include <string>
#include <vector>

#include "model/balance_report.h"
#include "util/result.h"

namespace unflake {

// "0.1%" or "0.001", at most `most`.
Result<double> parse_share(const std::string& text, const std::string& option, double most = 1);

// "idle,one-core", each once; idle, which all others are compared with, comes first.
Result<std::vector<LoadLevel>> parse_loads(const std::string& text);

// A factor, or the time that the benchmark takes on the other machine: then it is run here.
Result<double> parse_scale(const std::string& text);

}  // namespace unflake
