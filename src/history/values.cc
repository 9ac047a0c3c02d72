#include "history/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace unflake {

int64_t to_microseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch()).count();
}

std::chrono::system_clock::time_point to_time(int64_t microseconds) {
  using Time = std::chrono::system_clock::time_point;
  const int64_t bounded =
      std::clamp(microseconds, to_microseconds(Time::min()) + 1, to_microseconds(Time::max()));
  return Time(std::chrono::microseconds(bounded));
}

std::string make_session_uuid() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace unflake
