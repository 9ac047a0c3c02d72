#pragma once

#include <memory>

#include "run/local_executor.h"

namespace unflake {

// Starts programs for tests, as unflake itself does.
class TestLauncher : public Launcher {
 public:
  ProcessResult launch(const Command& command, Duration timeout) override {
    return executor_->launch(command, timeout);
  }

 private:
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_ = std::move(*LocalExecutor::create({}, interrupts_));
};

}  // namespace unflake
