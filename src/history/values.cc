#include "history/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "util/capture.h"
#include "util/process_result.h"

namespace unflake {
namespace {

constexpr size_t output_head = 16 * 1024;
constexpr size_t output_tail = 48 * 1024;  // longer: that is where tests say why they failed

}  // namespace

int64_t to_microseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch()).count();
}

std::chrono::system_clock::time_point to_time(int64_t microseconds) {
  using Time = std::chrono::system_clock::time_point;
  const int64_t bounded =
      std::clamp(microseconds, to_microseconds(Time::min()) + 1, to_microseconds(Time::max()));
  return Time(std::chrono::microseconds(bounded));
}

std::string bounded_output(std::string_view output) {
  if (output.size() <= output_head + output_tail) return std::string(output);
  BoundedCapture capture(output_head, output_tail);
  capture.append(output);
  return CapturedOutput{capture.head(), capture.tail(), capture.total()}.text();
}

std::string make_session_uuid() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace unflake
