#pragma once

#include <algorithm>
#include <cmath>

#include "util/duration.h"

namespace unflake {

// To a value that reads well in source code: two digits where that adds at most 1 %, else whole
// milliseconds from 40 on, else three digits.
inline Duration round_up(Duration value) {
  if (value <= Duration::zero()) return Duration::zero();
  const auto exact = static_cast<double>(value.count());
  const auto to_unit = [&](double unit) { return std::ceil(exact / unit - 1e-9) * unit; };
  const double first_digit = std::pow(10, std::floor(std::log10(exact)));
  const double two_digits = to_unit(std::max(1.0, first_digit / 10));
  const double otherwise =
      exact >= 40'000 ? to_unit(1000) : to_unit(std::max(1.0, first_digit / 100));
  return Duration(std::llround(two_digits <= exact * 1.01 ? two_digits : otherwise));
}

}  // namespace unflake
