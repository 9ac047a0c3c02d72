#pragma once

#include <functional>

// Stands for a library that was taken over as it is.
namespace retry {

bool twice(const std::function<bool()>& attempt);

}  // namespace retry
