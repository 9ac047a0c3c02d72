#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "store/lifecycle_event.h"
#include "util/known_duration.h"

namespace unflake {

// A duration as a report has it: seconds, "0.25", "1,234.5", "0,25". What makes no sense as the
// duration of a test becomes the nearest that does, and is odd. No text is a time that is not
// known.
struct ReportedTime {
  Duration duration = unknown_duration;
  bool is_odd = false;
};
ReportedTime parse_seconds(std::string_view text);

// ISO 8601, with a zone or in UTC. None: it is nothing like it, or of another epoch than tests.
std::optional<TimePoint> parse_report_timestamp(std::string_view text);

// Seconds since 1970, as CTest has it.
std::optional<TimePoint> parse_epoch_seconds(std::string_view text);

}  // namespace unflake
