#pragma once

namespace unflake {

// The machine as a run finds it: what can be made scarce without touching the test.
struct Conditions {
  bool one_core = false;  // all threads share one core
  double cpu_share =
      1;                // the part of the time in which the test may run; in the rest it is stopped
  int competitors = 0;  // busy processes on the cores that the test may use

  bool operator==(const Conditions&) const = default;
};

}  // namespace unflake
