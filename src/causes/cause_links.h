#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "store/values.h"

namespace unflake {

// A cause and those of the given failures that belong to it.
struct LinkedCause {
  CauseRecord record;
  std::vector<size_t> failures;  // by their place in the given list, ascending
  bool changed = false;          // the record differs from the one that was known
  bool came_back = false;        // it was closed, and failed again afterwards
};

// How a cause identifies a failure: its signature; for one that says nothing but that a test
// failed, one that is the test's own.
std::string cause_signature(const FlakyFailure& failure);

// Whether a failure after a cause was closed is a return, and not from code without the fix.
using IsReturn = std::function<bool(const CauseRecord& closed, const FlakyFailure& failure)>;

// Which failures have one cause. A known cause keeps its id, its title, its issue and its
// signatures; failures join it or start a new one, the oldest first, so that the answer does not
// depend on their order. One that was closed and failed afterwards is open again.
std::vector<LinkedCause> link_causes(std::span<const FlakyFailure> failures,
                                     std::span<const CauseRecord> known, TimePoint now,
                                     const IsReturn& is_return = {});

// The comparable parts of a failure: its place, and its words without whatever
// differs between runs, machines and tests.
struct FailureTraits {
  FailureKind kind = FailureKind::exit_status;
  TestId test;
  std::string folder, file;  // the nearest folder only: the ones above differ between machines
  int line = 0;
  std::string function, expression;
  std::vector<uint64_t> shingles;  // words and pairs of words that the author said, ascending
  size_t telling = 0;              // of these words, the ones that not every failure has
  size_t expression_words = 0;     // different ones
  TimePoint first, last;
  std::string first_commit, last_commit;
};

FailureTraits traits_of(const FlakyFailure& failure);

// Neither a place nor enough distinctive words: "exit status 1" of two tests is not one failure.
bool is_vague(const FailureTraits& traits);

// The share of what two failures say that both say, 0 to 1; 1 when neither says anything.
double common_words(const FailureTraits& a, const FailureTraits& b);

// Whether two failures with different signatures have one cause, by the first of these that
// applies. Precision comes before recall: one report too many costs less than a fix that is claimed
// for two bugs.
//   place     the same line, or for crashes, time-outs and sanitizers the same function, and at
//             least half of the words
//   moved     the same check of the same test on another line: at least three words long, and
//             never seen on the old line after it had been seen on the new one, in another commit
//   words     at least 80 % of the words, four of them distinctive, wherever and in whatever test
//             it is; in the same file 60 %
bool have_one_cause(const FailureTraits& a, const FailureTraits& b);

// Failures that may have one cause have a bucket in common.
std::vector<uint64_t> buckets_of(const FailureTraits& traits);

}  // namespace unflake
