#pragma once

#include <functional>

#include "model/detect_report.h"

namespace unflake {

// Builds of commits, oldest first, of which the first holds and the last fails.
struct BisectedBuilds {
  size_t commits = 0;
  // Runs the test as it was at a commit. A failure that was seen is certain; that there was none is
  // not, and a thorough look makes it less likely to be chance.
  std::function<CommitLook(size_t commit, bool thoroughly)> look;
  // No look can be made any more.
  std::function<bool()> has_ended = [] { return false; };
  std::function<void(const CommitBisection::Step&)> tell = [](const CommitBisection::Step&) {};
};

// Which commit is the first at which the test fails. Halves what is left, goes around commits that
// cannot be told, and looks again, thoroughly, at the one on which the answer rests: the last at
// which the test holds. Should it fail there, the search goes on before it.
CommitBisection find_first_failing(const BisectedBuilds& builds);

// How many runs, none of which fails, leave no more than this chance that a test was unlucky which
// fails as often as these counts tell.
int runs_that_tell(const Count& failures, double error);

}  // namespace unflake
