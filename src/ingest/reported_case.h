#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ingest/report_times.h"
#include "store/lifecycle_event.h"
#include "util/capture.h"
#include "util/duration.h"

namespace unflake {

// Text of any length, of which the beginning and the end are kept.
class KeptText {
 public:
  KeptText() : capture_(head_bytes, tail_bytes) {}

  void append(std::string_view text) { capture_.append(text); }
  bool empty() const { return capture_.total() == 0; }
  void clear();
  std::string text() const;

 private:
  static constexpr size_t head_bytes = 16 * 1024, tail_bytes = 44 * 1024;
  BoundedCapture capture_;
};

// <failure>, <error>, and what several tools write for runs that were tried again.
struct ReportedFailure {
  enum class Run {
    last,    // of the case's own run: <failure>, <error>
    before,  // a run of its own before that: <flakyFailure>, <flakyError>, <rerun>
    after,   // a run of its own behind it: <rerunFailure>, <rerunError>
  };
  Run run = Run::last;
  bool is_error = false;
  std::string message, type;
  KeptText text, output;
  std::optional<ReportedTime> time;
  std::optional<TimePoint> timestamp;
};

struct ReportedSuite {
  std::string name;
  std::optional<TimePoint> timestamp;
  bool has_id = false;  // Boost.Test numbers its only one
  bool of_catch2 = false, of_doctest = false;
};

// One <testcase>, or one <Test> of CTest's, as it stands in the report.
struct ReportedCase {
  enum class Status { none, run, failed, not_run };  // as an attribute says, without an element
  std::string classname, name;
  std::string full_name;  // in what unflake wrote, where class and name do not tell it
  Status status = Status::none;
  ReportedTime time;
  std::optional<TimePoint> timestamp;
  bool has_result = false, has_assertions = false, of_ctest = false;
  bool is_skipped = false;
  std::string why_not_run;            // CTest's words for it
  int64_t runs = 0, failed_runs = 0;  // of a case of unflake's that stands for several
  std::vector<ReportedFailure> failures;
  KeptText output;

  void clear();
};

}  // namespace unflake
