#include "history/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "util/known_duration.h"

namespace unflake {

int64_t to_microseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch()).count();
}

std::optional<int64_t> to_microseconds(
    const std::optional<std::chrono::system_clock::time_point>& time) {
  if (!time) return std::nullopt;
  return to_microseconds(*time);
}

std::chrono::system_clock::time_point to_time(int64_t microseconds) {
  using Time = std::chrono::system_clock::time_point;
  const int64_t bounded =
      std::clamp(microseconds, to_microseconds(Time::min()) + 1, to_microseconds(Time::max()));
  return Time(std::chrono::microseconds(bounded));
}

int64_t recorded_us(Duration duration) {
  return duration == unknown_duration ? duration.count() : std::max<int64_t>(duration.count(), 0);
}

std::string join_argv(const std::vector<std::string>& argv) {
  std::string joined;
  for (const std::string& word : argv) joined.append(word.c_str()).push_back('\0');
  return joined;
}

std::vector<std::string> split_argv(std::string_view joined) {
  std::vector<std::string> argv;
  for (size_t end = 0; (end = joined.find('\0')) != std::string_view::npos;) {
    argv.emplace_back(joined.substr(0, end));
    joined.remove_prefix(end + 1);
  }
  return argv;
}

int64_t cut_off(const std::optional<Duration>& kept, std::chrono::system_clock::time_point now) {
  if (!kept) return INT64_MIN;
  return to_microseconds(now) - std::clamp<int64_t>(kept->count(), 0, INT64_MAX / 2);
}

std::string make_session_uuid() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace unflake
