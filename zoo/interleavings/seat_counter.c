// Two desks sell the next free seat, without a lock around looking and taking.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static int next_seat;
static int sold[8];

static void* sell(void* unused) {
  (void)unused;
  const int seat = next_seat;  // barrier
  sold[seat] += 1;
  next_seat = seat + 1;  // critical
  return NULL;
}

int main(void) {
  pthread_t first_desk, second_desk;
  pthread_create(&first_desk, NULL, sell, NULL);
  pthread_create(&second_desk, NULL, sell, NULL);
  pthread_join(first_desk, NULL);
  pthread_join(second_desk, NULL);
  assert(next_seat == 2);  // fails here
  return 0;
}
