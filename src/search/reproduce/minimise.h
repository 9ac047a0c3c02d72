#pragma once

#include <functional>
#include <vector>

namespace unflake {

// Zeller's ddmin. `fails` tells whether the test still fails with these of the numbers 0 to n-1,
// and holds for all of them together. What remains is 1-minimal: with any one of it left out,
// `fails` said no. It says so of every set once at most, and never of the empty one.
using StillFails = std::function<bool(const std::vector<size_t>&)>;
std::vector<size_t> minimise(size_t n, const StillFails& fails);

}  // namespace unflake
