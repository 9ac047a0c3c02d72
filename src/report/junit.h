#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "model/events.h"
#include "report/junit_xml.h"
#include "util/result.h"

namespace unflake {

struct JunitOptions {
  std::string path;
  bool flaky_fails = false;  // a flaky test is a <failure> and not a pass with <flakyFailure>
  std::function<std::string()> session_uuid = {};  // of the history; none: it is not recorded
};

// Collects a session for CI systems and writes it as one XML file when the session ends, also when
// it was interrupted.
class JunitReport : public Consumer {
 public:
  static Result<std::unique_ptr<JunitReport>> create(JunitOptions options);

  void on(const Event& event) override;
  const Result<void>& written() const { return written_; }  // how it went, once the session ended

 private:
  explicit JunitReport(JunitOptions options) : options_(std::move(options)) {}

  void take(const SessionStarted& session);
  void take(const RunEnded& run);
  void take(const TestEnded& test);
  void take(const SessionEnded& session);
  template <class Other>
  void take(const Other&) {}

  JunitCase& case_of(const std::shared_ptr<const Test>& test);
  void keep_failure(JunitCase& found, const RunEnded& run);

  JunitOptions options_;
  JunitSession session_;
  std::map<TestId, size_t> case_numbers_;
  size_t output_kept_ = 0;
  Result<void> written_;
};

}  // namespace unflake
