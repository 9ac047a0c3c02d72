#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "util/result.h"

namespace unflake {

// Fills the front of the span and gives how much; 0 is the end.
using ByteSource = std::function<Result<size_t>(std::span<char> into)>;

// The descriptor stays open and the caller's; `name` is for messages.
ByteSource bytes_of_descriptor(int fd, std::string name);

// The text has to outlive the source.
ByteSource bytes_of_text(std::string_view text);

}  // namespace unflake
