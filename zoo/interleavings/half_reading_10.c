// A display reads while nine sensors write.
#include "support/half_reading.h"

int main(void) {
  return watch_station(9);
}
