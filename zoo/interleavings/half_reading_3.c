// A display reads while two sensors write.
#include "support/half_reading.h"

int main(void) {
  return watch_station(2);
}
