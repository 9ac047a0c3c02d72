#pragma once

#include "suite/adapter.h"

namespace unflake {

// Starts programs for tests, without the care that the real runner takes of processes that a test
// leaves behind.
class TestLauncher : public Launcher {
 public:
  ProcessResult launch(const Command& command, Duration timeout) override;
};

}  // namespace unflake
