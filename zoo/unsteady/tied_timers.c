// Two timers, the second sometimes longer, are set one after the other, and the first one is
// expected to be heard first.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "support/chance.h"

static atomic_int gone_off;
static int order[2];

static void* wait_for(void* timer) {
  uint64_t times;
  if (read(*(int*)timer, &times, sizeof times) != sizeof times) return NULL;
  order[atomic_fetch_add(&gone_off, 1)] = *(int*)timer;  // critical, barrier
  return NULL;
}

int main(void) {
  struct itimerspec length = {.it_value = {.tv_nsec = 3000000}};
  int timers[2];
  pthread_t waiters[2];
  for (int i = 0; i < 2; ++i) {
    timers[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    timerfd_settime(timers[i], 0, &length, NULL);
    pthread_create(&waiters[i], NULL, wait_for, &timers[i]);
    length.it_value.tv_nsec += 2000000 * draw(3);
  }
  for (int i = 0; i < 2; ++i) pthread_join(waiters[i], NULL);
  assert(order[0] == timers[0]);  // fails here
  return 0;
}
