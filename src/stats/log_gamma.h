#pragma once

#include <cmath>

namespace unflake {

inline double log_gamma(double x) {
  int sign = 0;  // std::lgamma keeps the sign in a global that threads share
  return ::lgamma_r(x, &sign);
}

}  // namespace unflake
