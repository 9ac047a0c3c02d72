#pragma once

#include <set>
#include <string>

#include "model/test.h"

namespace unflake {

// What the running tests keep from the others: processors, locks, or everything.
class Reservations {
 public:
  explicit Reservations(size_t slots) : slots_(slots) {}

  bool allow(const Test& test) const;
  void occupy(const Test& test);
  void vacate(const Test& test);

 private:
  size_t processors_of(const Test& test) const;

  size_t slots_;
  size_t running_ = 0;
  size_t processors_ = 0;
  bool serial_is_running_ = false;
  std::set<std::string> locks_;
};

}  // namespace unflake
