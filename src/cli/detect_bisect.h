#pragma once

#include "app/bisecting.h"
#include "app/options.h"
#include "util/result.h"

namespace unflake {

// What `unflake detect --bisect` takes.
struct BisectCommand {
  std::string revisions;  // empty: it is not asked for
  std::string build;
  std::optional<Duration> build_timeout;
  int jobs = 0;

  void add_to(CommandLine& line);
};

// Finds the commit that introduced a flaky test, tells it, and notes it in the history. Gives the
// exit code.
Result<int> bisect(const BisectCommand& command, const OneTestOptions& one, const Words& words,
                   std::optional<Duration> budget, uint64_t seed, bool json);

}  // namespace unflake
