// A display reads while nineteen sensors write.
#include "support/half_reading.h"

int main(void) {
  return watch_station(19);
}
