#pragma once

#include <functional>
#include <string>
#include <vector>

#include "search/reproduce/hunt.h"

namespace unflake {

// Zeller's ddmin. `fails` tells whether the test still fails with these of the numbers 0 to n-1,
// and holds for all of them together. What remains is 1-minimal: with any one of it left out,
// `fails` said no. It says so of every set once at most, and never of the empty one.
using StillFails = std::function<bool(const std::vector<size_t>&)>;
std::vector<size_t> minimise(size_t n, const StillFails& fails);

// The calls of the profile, by when they were first reached: what FlakeRake names sleepy lines.
std::vector<Place> sleepy_places(const Profile& profile);

// A delay at each of the places that halves with each visit, so that loops stay affordable. As long
// as asked, or as the budget and the time limit have room for when one thread has many of them.
Trial delay_all(const Hunt& hunt, const std::vector<Place>& places, Duration delay,
                std::string why);

// How many times such a delay the slowest thread takes longer.
int most_delays_in_a_thread(const std::vector<Place>& places);

// Takes interventions and visits out of the plan that the failure does not need. Like the
// measurement below it ends when so much time has elapsed, or with the budget.
void shrink(Hunt& hunt, Found& found, Duration until = Duration::max());

// The least lateness under which the failure comes in more than half of the runs, and how often it
// comes under the others that were tried on the way. All delays of the plan are scaled together.
void measure_slack(Hunt& hunt, Found& found, Duration until = Duration::max());

// All delays scaled so that the longest one is this long.
Plan with_longest_delay(const Plan& plan, Duration longest);

}  // namespace unflake
