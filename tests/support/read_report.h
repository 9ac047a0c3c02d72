#pragma once

#include <gtest/gtest.h>

#include "ingest/ingest.h"

namespace unflake {

struct ReadRuns {
  std::vector<RunRecord> runs;
  ReadReport report;

  std::string ids() const {
    std::string text;
    for (const RunRecord& run : runs) text += to_string(run.test) + "\n";
    return text;
  }
};

inline const TimePoint fallback_time = TimePoint(std::chrono::seconds(1'700'000'000));

inline ReadRuns read_report(ByteSource bytes, const ReportOrigin& origin) {
  ReadRuns read;
  const auto take = [&](std::span<RunRecord> runs) -> Result<void> {
    read.runs.insert(read.runs.end(), runs.begin(), runs.end());
    return {};
  };
  const auto report = read_results(std::move(bytes), {"report.xml", origin, fallback_time}, take);
  EXPECT_TRUE(report);
  if (report) read.report = *report;
  return read;
}

inline ReadRuns read_report(std::string_view text, const std::string& path = "") {
  return read_report(bytes_of_text(text), {path, "", ""});
}

// The only run of a report that is read to its end.
inline RunRecord only_run(std::string_view text, const std::string& path = "") {
  const ReadRuns read = read_report(text, path);
  EXPECT_FALSE(read.report.refused) << to_string(*read.report.refused);
  EXPECT_EQ(read.runs.size(), 1u);
  return read.runs.empty() ? RunRecord() : read.runs.front();
}

}  // namespace unflake
