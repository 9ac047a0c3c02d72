// What differs from run to run, for C and C++.
#pragma once

#include <sys/random.h>

// One of 0, 1 ... below - 1, all alike.
static inline unsigned draw(unsigned below) {
  unsigned drawn = 0;
  return getrandom(&drawn, sizeof drawn, 0) == sizeof drawn ? drawn % below : 0;
}

// Arithmetic that takes about half a millisecond.
static inline unsigned compute(unsigned number) {
  for (int i = 0; i < 300000; ++i) number = number * 1664525u + 1013904223u;
  return number;
}
