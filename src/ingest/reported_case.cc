#include "ingest/reported_case.h"

#include <fmt/format.h>

namespace unflake {

void KeptText::clear() {
  if (!empty()) capture_ = BoundedCapture(head_bytes, tail_bytes);
}

std::string KeptText::text() const {
  const std::string tail = capture_.tail();
  const uint64_t missing = capture_.total() - capture_.head().size() - tail.size();
  if (missing == 0) return capture_.head() + tail;
  return fmt::format("{}\n[... {} bytes not shown ...]\n{}", capture_.head(), missing, tail);
}

// Keeps the memory of what every case has.
void ReportedCase::clear() {
  classname.clear();
  name.clear();
  full_name.clear();
  why_not_run.clear();
  status = Status::none;
  time = {};
  timestamp.reset();
  has_result = has_assertions = of_ctest = is_skipped = false;
  runs = failed_runs = 0;
  failures.clear();
  output.clear();
}

}  // namespace unflake
