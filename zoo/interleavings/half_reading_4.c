// A display reads while three sensors write.
#include "support/half_reading.h"

int main(void) {
  return watch_station(3);
}
