#include "report/timestamp.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace unflake {
namespace {

using Seconds = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;

Seconds whole_seconds(std::chrono::system_clock::time_point time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

std::tm in_utc(Seconds seconds) {
  return fmt::gmtime(std::chrono::system_clock::to_time_t(seconds));
}

}  // namespace

std::string timestamp(std::chrono::system_clock::time_point time) {
  const Seconds seconds = whole_seconds(time);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(time - seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", in_utc(seconds), rest.count());
}

std::string timestamp_in_seconds(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", in_utc(whole_seconds(time)));
}

std::string timestamp_in_minutes(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%d %H:%M}", in_utc(whole_seconds(time)));
}

}  // namespace unflake
