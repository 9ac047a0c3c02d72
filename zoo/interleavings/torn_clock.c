// A clock's version is odd while its hands move. Who reads it looks at the version before, but not
// again afterwards.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int version;
static atomic_int hours = 11;
static atomic_int minutes = 59;

static void* tick(void* unused) {
  (void)unused;
  version += 1;
  minutes = 0;  // step
  hours = 12;   // critical
  version += 1;
  return NULL;
}

static void* look(void* time) {
  while (version % 2 != 0) continue;
  const int hour = hours;             // barrier
  *(int*)time = hour * 60 + minutes;  // step
  return NULL;
}

int main(void) {
  pthread_t clockwork, passer_by;
  int time = 0;
  pthread_create(&clockwork, NULL, tick, NULL);
  pthread_create(&passer_by, NULL, look, &time);
  pthread_join(clockwork, NULL);
  pthread_join(passer_by, NULL);
  assert(time == 11 * 60 + 59 || time == 12 * 60);  // fails here
  return 0;
}
