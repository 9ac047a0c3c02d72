// Two clerks sell seats and count them without a lock: one of the two may be lost.
#include <assert.h>
#include <pthread.h>

static volatile int sold;

static void* sell(void* nothing) {
  sold = sold + 1;
  return nothing;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, sell, 0);
  pthread_create(&b, 0, sell, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  const int all = sold;

  assert(all == 2);
  return 0;
}
