#include "search/reservations.h"

#include <algorithm>

namespace unflake {

bool Reservations::allow(const Test& test) const {
  if (serial_is_running_ || (test.serial && running_ > 0)) return false;
  if (processors_ + processors_of(test) > slots_) return false;
  return std::ranges::none_of(test.locks,
                              [&](const std::string& lock) { return locks_.contains(lock); });
}

void Reservations::occupy(const Test& test) {
  ++running_;
  processors_ += processors_of(test);
  serial_is_running_ = test.serial;
  locks_.insert(test.locks.begin(), test.locks.end());
}

void Reservations::vacate(const Test& test) {
  --running_;
  processors_ -= processors_of(test);
  if (test.serial) serial_is_running_ = false;
  for (const std::string& lock : test.locks) locks_.erase(lock);
}

// A test that asks for more than there is gets everything.
size_t Reservations::processors_of(const Test& test) const {
  return std::clamp<size_t>(static_cast<size_t>(std::max(1, test.processors)), 1, slots_);
}

}  // namespace unflake
