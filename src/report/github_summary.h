#pragma once

#include <memory>
#include <string>

#include "report/notable_tests.h"
#include "util/result.h"

namespace unflake {

// GitHub refuses a step's summary that is longer.
inline constexpr size_t longest_step_summary = 1024 * 1024;

// Appends a table of what failed to the file that GitHub Actions shows as a step's summary.
class GithubSummary : public Consumer {
 public:
  explicit GithubSummary(std::string path, size_t most = longest_step_summary)
      : path_(std::move(path)), most_(most) {}

  void on(const Event& event) override;
  const Result<void>& written() const { return written_; }  // how it went, once the session ended

 private:
  std::string table(const SessionEnded& ended, size_t room) const;
  Result<void> append(const SessionEnded& ended) const;

  std::string path_;
  size_t most_;
  std::string target_;
  NotableTests tests_;
  Result<void> written_;
};

}  // namespace unflake
