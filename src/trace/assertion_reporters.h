#pragma once

#include <string_view>
#include <vector>

#include "symbols/image.h"

namespace unflake {

// The functions of this image that a test framework calls when a check fails, and for few other
// reasons: where the stack of the failing check can be seen.
std::vector<Function> assertion_reporters(const Image& image);

// Whether a shared library of this name is a test framework, wherever it is installed.
bool is_framework_library(std::string_view file_name);

}  // namespace unflake
