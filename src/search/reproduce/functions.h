#pragma once

#include <vector>

#include "search/reproduce/hunt.h"

namespace unflake {

// A function of project code that was entered while another thread was alive.
struct ConcurrentFunction {
  std::vector<Place> entries;  // one for each thread that entered it, by when it first did
  std::string file;            // as sites name it
  std::vector<int> lines;
};

// From a few runs of their own. More than the functions that really ran side by side, as FlakeSync
// has it: which pairs did is not asked. By when they were first entered.
std::vector<ConcurrentFunction> find_concurrent_functions(Hunt& hunt, int runs = 3);

}  // namespace unflake
