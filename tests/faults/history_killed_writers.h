#pragma once

#include "store/store.h"

namespace unflake {

// Eight processes deliver batches, are killed at random moments and deliver everything again. Fails
// the test unless every result is there once and all sums say the same. The history must be empty.
void expect_killed_writers_lose_and_double_nothing(const StoreAddress& address);

}  // namespace unflake
