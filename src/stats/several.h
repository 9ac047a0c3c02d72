#pragma once

#include <cstdint>
#include <vector>

namespace unflake {

// Holm's correction for several questions that are asked at once: the p-value of each, raised so
// that whoever believes those below `error` is wrong about any of them no more often than that.
std::vector<double> holm(const std::vector<double>& p_values);

// How likely a split at least as uneven as this one is if either side had the same chance: the sign
// test, two-sided and exact.
double sign_test(int64_t ups, int64_t downs);

}  // namespace unflake
