#pragma once

#include "util/duration.h"

namespace unflake {

// Of what took some time that nobody told: that is not none.
inline constexpr Duration unknown_duration{-1};

// As format_duration(); "-" when it is not known.
inline std::string format_known_duration(Duration duration) {
  return duration == unknown_duration ? "-" : format_duration(duration);
}

}  // namespace unflake
