#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "suite/adapter.h"

namespace unflake {

// Answers for programs that are not there: the last argument chooses the answer.
class ScriptedLauncher : public Launcher {
 public:
  void answer(std::string last_argument, std::string output, int code = 0,
              std::string errors = "") {
    ProcessResult result;
    result.code = code;
    result.output = {output, "", output.size()};
    result.errors = {errors, "", errors.size()};
    answers_[std::move(last_argument)] = std::move(result);
  }

  ProcessResult launch(const Command& command, Duration) override {
    commands.push_back(command);
    const auto found = answers_.find(command.argv.back());
    if (found != answers_.end()) return found->second;
    ProcessResult result;
    result.end = ProcessResult::End::not_started;
    result.error = "nothing was scripted for " + command.argv.back();
    return result;
  }

  std::vector<Command> commands;

 private:
  std::map<std::string, ProcessResult> answers_;
};

}  // namespace unflake
