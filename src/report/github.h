#pragma once

#include <functional>
#include <memory>
#include <string>

#include "report/layout.h"
#include "report/summary.h"
#include "util/result.h"

namespace unflake {

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
