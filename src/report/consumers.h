#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/events.h"
#include "model/test.h"
#include "report/layout.h"
#include "report/terminal.h"
#include "util/result.h"

namespace unflake {

struct JunitName {
  std::string classname;
  std::string name;
};

// `target.Suite` and `Test`, where CI systems fold by classname. `classname.name` is unique, and
// depends on the set of tests only, not on their order: CI systems follow a test by this name.
std::map<TestId, JunitName> junit_names(const std::vector<std::shared_ptr<const Test>>& tests);

inline constexpr size_t longest_name = 1000;

// XML 1.0 has characters that no escape can express; they become `?`.
std::string xml_text(std::string_view text);

// A failing run as it is kept for the report: safe text, bounded.
struct JunitFailure {
  int attempt = 1;
  OutcomeKind kind = OutcomeKind::fail;
  std::string type;
  std::string message;
  std::string details;
  std::string output;
};

struct JunitCase {
  std::shared_ptr<const Test> test;
  Verdict verdict = Verdict::not_run;
  Tally tally;
  Duration total_time{};
  std::string reason;
  std::optional<GateDecision> gate = std::nullopt;
  std::vector<JunitFailure> failures = {};  // the first ones; the tally knows how many there were
};

struct JunitSession {
  SessionStarted started;
  SessionEnded ended;
  std::vector<JunitCase> cases;
  std::string uuid = {};  // which identifies it in the history; empty: it is not there
};

// The report in the dialect of Maven Surefire, which most CI systems read.
std::string junit_xml(const JunitSession& session, bool flaky_fails);

struct JunitOptions {
  std::string path;
  bool flaky_fails = false;  // a flaky test is a <failure> and not a pass with <flakyFailure>
  std::function<std::string()> session_uuid = {};  // of the history; none: it is not recorded
};

// Collects a session for CI systems and writes it as one XML file when the session ends, even when
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

// One JSON object per event and line, for programs; docs/formats.md describes every field. Each
// line is one write, so that a reader never sees half an event of a session that is killed.
class JsonLines : public Consumer {
 public:
  explicit JsonLines(Sink& sink) : sink_(sink) {}
  void on(const Event& event) override;

 private:
  Sink& sink_;
};

// GitHub shows no more of each level for one step.
inline constexpr size_t most_annotations = 10;

// Tells GitHub Actions which lines failed, at the end of a session. Before that, the runner takes
// nothing that a test prints for a command.
class GithubAnnotations : public Consumer {
 public:
  struct Options {
    // A file as the repository knows it; empty when it is not inside.
    std::function<std::string(const std::string& file)> path_of;
    std::string secret;  // unguessable: it ends the time without commands
  };

  GithubAnnotations(Sink& sink, Options options) : sink_(sink), options_(std::move(options)) {}
  void on(const Event& event) override;

 private:
  void annotate();

  Sink& sink_;
  Options options_;
  NotableTests tests_;
};

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
