#pragma once

#include <string>
#include <vector>

#include "report/explanation_words.h"

namespace unflake {

// What both drawings of a comparison share, so that they can be laid over each other.
struct TimelineFrame {
  Duration from{}, to{};
  std::vector<std::string> lanes;  // names of threads
  size_t threads_left_out = 0;
};

// The whole of both runs; the threads that the explanation names are never left out.
TimelineFrame whole_frame(const ExplanationReport& report);

// The time around the pair; the same as the whole where a closer look shows no more.
TimelineFrame frame_around_pair(const ExplanationReport& report, const TimelineFrame& whole);

struct Timeline {
  std::string svg;
  size_t drawn = 0, left_out = 0;  // calls
};

enum class WhichRun { passing, failing };

// A lane per thread with its calls, the plan's delays, the failure and the pair.
Timeline timeline_svg(const ExplanationReport& report, WhichRun which, const TimelineFrame& frame);

// A step between marks on an axis of this length: 1, 2 or 5 times a power of ten, 4 to 10 of them.
double axis_step(double length);

}  // namespace unflake
