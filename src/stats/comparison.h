#pragma once

#include <cstdint>
#include <optional>

namespace unflake {

// How likely it is that a would hit at least as often as it did if both had the same rate: Fisher's
// exact test, one-sided. Small means that a's rate is the higher one. It holds for any number of
// runs, few ones too, where a normal approximation would promise too much. Without runs of both
// there is nothing to compare: 1.
double fisher_more_often(int64_t hits_a, int64_t runs_a, int64_t hits_b, int64_t runs_b);

// How likely it is that two rates which are the same would look at least as different as this: both
// sides of the test above, doubled.
double fisher_differs(int64_t hits_a, int64_t runs_a, int64_t hits_b, int64_t runs_b);

// How many more runs of b, all without a hit, would show at this `error` that a's rate is the
// higher one. None when no number would: a has no hits.
std::optional<int64_t> misses_until_less_often(int64_t hits_a, int64_t runs_a, int64_t hits_b,
                                               int64_t runs_b, double error);

}  // namespace unflake
