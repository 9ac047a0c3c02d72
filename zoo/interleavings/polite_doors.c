// Two come to a door, and each lets the other go first. They do it the wrong way round: "after you"
// before "I want to".
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int wants[2];
static atomic_int turn;
static int passed;

static void* pass(void* who) {
  const int me = who != NULL, other = 1 - me;
  turn = other;                                    // step
  wants[me] = 1;                                   // critical
  while (wants[other] && turn == other) continue;  // barrier
  const int before = passed;
  passed = before + 1;  // step
  wants[me] = 0;
  return NULL;
}

int main(void) {
  pthread_t guests[2];
  pthread_create(&guests[0], NULL, pass, NULL);
  pthread_create(&guests[1], NULL, pass, &turn);
  pthread_join(guests[0], NULL);
  pthread_join(guests[1], NULL);
  assert(passed == 2);  // fails here
  return 0;
}
