#pragma once

#include <functional>
#include <string>

#include "report/notable_tests.h"
#include "report/sink.h"

namespace unflake {

// GitHub shows no more of each level for one step.
inline constexpr size_t most_annotations = 10;

// Tells GitHub Actions which lines failed, at the end of a session. Until then nothing that a test
// prints is taken for a command of the runner.
class GithubAnnotations : public Consumer {
 public:
  struct Options {
    // A file as the repository knows it; empty when it is not in there.
    std::function<std::string(const std::string& file)> path_of;
    std::string secret;  // nobody can guess it: it ends the time without commands
  };

  GithubAnnotations(Sink& sink, Options options) : sink_(sink), options_(std::move(options)) {}
  void on(const Event& event) override;

 private:
  void annotate();

  Sink& sink_;
  Options options_;
  NotableTests tests_;
};

}  // namespace unflake
