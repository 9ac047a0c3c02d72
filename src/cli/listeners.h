#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/run_options.h"
#include "report/github_annotations.h"
#include "report/github_summary.h"
#include "report/json_lines.h"
#include "report/junit.h"
#include "report/terminal.h"
#include "run/interrupts.h"
#include "store/recorder.h"

namespace unflake {

// `choice` is auto, always or never.
bool wants_colour(const std::string& choice, int fd);

// Whether a display that is rewritten in place makes sense there.
bool can_be_live(int fd);

// Standard output belongs to the JSON lines when they are asked for.
int terminal_of(const RunCommand& run);

// Everything that listens to a session.
class Listeners {
 public:
  // Without a way to open a store, nothing is recorded.
  Result<void> open(const RunCommand& run, FlakyResult flaky, HistoryRecorder::OpenStore store,
                    const Executor& executor, const Interrupts& interrupts);

  EventStream& stream() { return stream_; }

  // What could not be written although the session went well.
  std::optional<Error> complaint() const;

 private:
  Result<void> open_json(const RunCommand& run, const Interrupts& interrupts);
  Result<void> open_junit(const RunCommand& run, FlakyResult flaky);
  void add_json(int fd, const Interrupts& interrupts);
  void open_github();

  EventStream stream_;
  std::unique_ptr<FdSink> terminal_sink_;
  std::unique_ptr<TerminalReport> terminal_;
  std::unique_ptr<HistoryRecorder> recorder_;
  UniqueFd json_file_;
  std::vector<std::unique_ptr<FdSink>> json_sinks_;
  std::vector<std::unique_ptr<JsonLines>> json_;
  std::unique_ptr<JunitReport> junit_;
  std::unique_ptr<GithubAnnotations> annotations_;
  std::unique_ptr<GithubSummary> summary_;
};

}  // namespace unflake
