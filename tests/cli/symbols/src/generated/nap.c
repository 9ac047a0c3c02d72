#include <unistd.h>

void nap(void) {
  usleep(1000);
}
