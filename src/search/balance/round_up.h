#pragma once

#include <cmath>

#include "util/duration.h"

namespace unflake {

// To a value that reads well: two digits where that adds at most 1 %, else three.
inline Duration round_up(Duration value) {
  if (value <= Duration::zero()) return Duration::zero();
  const auto exact = static_cast<double>(value.count());
  const auto to_digits = [&](int digits) {
    const double unit = std::max(1.0, std::pow(10, std::floor(std::log10(exact)) + 1 - digits));
    return std::ceil(exact / unit - 1e-9) * unit;
  };
  const double two = to_digits(2);
  return Duration(std::llround(two <= exact * 1.01 ? two : to_digits(3)));
}

}  // namespace unflake
