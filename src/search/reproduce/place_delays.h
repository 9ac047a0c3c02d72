#pragma once

#include <string>
#include <vector>

#include "search/reproduce/hunt.h"

namespace unflake {

// The calls of the profile, by when they were first reached: what FlakeRake names sleepy lines.
std::vector<Place> sleepy_places(const Profile& profile);

// A delay at each of the places that halves with each visit, so that loops stay affordable. As long
// as asked, or as the budget and the time limit have room for when one thread has many of them.
Trial delay_all(const Hunt& hunt, const std::vector<Place>& places, Duration delay,
                std::string why);

// How many times such a delay the slowest thread takes longer.
int most_delays_in_a_thread(const std::vector<Place>& places);

}  // namespace unflake
