// Hopes that 50 ms are enough for another thread, whose letter a library keeps.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

#include "letter.h"

static void* carry(void* unused) {
  usleep(1000);
  letter_put();
  return unused;
}

int main(void) {
  pthread_t carrier;
  pthread_create(&carrier, NULL, carry, NULL);
  usleep(50000);
  assert(letter_is_there());
  pthread_join(carrier, NULL);
  return 0;
}
