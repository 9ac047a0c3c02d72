#pragma once

#include <string_view>
#include <vector>

#include "protocol/agent_protocol.h"
#include "symbols/image.h"

namespace unflake {

// A function by which a test framework learns of a failed check, among others: the stack of such a
// call begins at the check.
struct AssertionReporter {
  Function function;
  protocol::FailureSign sign;
};

std::vector<AssertionReporter> assertion_reporters(const Image& image);

// Whether a shared library of this name is a test framework, wherever it is installed.
bool is_framework_library(std::string_view file_name);

}  // namespace unflake
