#include "report/timestamp.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace unflake {
namespace {

using Seconds = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;

std::string date_and_time(Seconds seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

}  // namespace

std::string timestamp(std::chrono::system_clock::time_point time) {
  const Seconds seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(time - seconds);
  return fmt::format("{}.{:06}Z", date_and_time(seconds), rest.count());
}

std::string timestamp_in_seconds(std::chrono::system_clock::time_point time) {
  return date_and_time(std::chrono::floor<std::chrono::seconds>(time)) + "Z";
}

}  // namespace unflake
