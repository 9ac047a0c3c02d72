#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "history/lifecycle.h"
#include "history/sqlite/database.h"

namespace unflake {

// A row of `incidents` whose failure is flaky, with what its session says.
struct FlakyIncident {
  int64_t session = 0, test = 0, signature = 0, outcome = 0, failures = 0;
  int64_t first_us = 0, last_us = 0, wasted_us = 0;
  int64_t build = 0;  // a number for the build's name
  bool in_build = true;
  bool suppressed = false;
};

// Those of the sessions of a project that began in the window.
void for_each_flaky_incident(Database& database, int64_t project, const Window& window,
                             const std::function<void(const FlakyIncident&)>& take);

// Numbers names in the order in which they are seen.
class Numbering {
 public:
  int64_t of(std::string name) {
    return numbers_.try_emplace(std::move(name), static_cast<int64_t>(numbers_.size()))
        .first->second;
  }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

}  // namespace unflake
