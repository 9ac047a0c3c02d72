#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/options.h"

namespace unflake {

// What `unflake run --rerun-failed` runs.
struct Rerun {
  SelectedTests tests;       // none are selected when nothing failed
  std::string from;          // which tests of which session, in plain words
  std::vector<TestId> gone;  // failed, and are gone
};

using AskLastFailures =
    std::function<Result<std::optional<LastFailures>>(const SessionQuestion& question)>;

// The tests that failed in the last session of the target that the words name, or of any when they
// name none. `question` says which sessions count.
Result<Rerun> select_failed(TargetOptions options, const Words& words, SessionQuestion question,
                            const AskLastFailures& ask, const Project& project,
                            const FindTarget& find_target, Launcher& launcher);

}  // namespace unflake
