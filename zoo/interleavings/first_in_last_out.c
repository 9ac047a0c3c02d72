// The first of a group takes the hall's key, the last one gives it back, and both stand in the
// doorway meanwhile.
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t doorway = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t hall = PTHREAD_MUTEX_INITIALIZER;
static int singers;
static int dancers;
static int rehearsals;

static void enter(int* group) {
  pthread_mutex_lock(&doorway);
  if (++*group == 1) pthread_mutex_lock(&hall);  // barrier
  pthread_mutex_unlock(&doorway);
}

static void leave(int* group) {
  pthread_mutex_lock(&doorway);  // critical
  if (--*group == 0) pthread_mutex_unlock(&hall);
  pthread_mutex_unlock(&doorway);
}

static void* rehearse(void* group) {
  enter(group);
  rehearsals += 1;
  leave(group);
  return NULL;
}

int main(void) {
  pthread_t singer, dancer;
  pthread_create(&singer, NULL, rehearse, &singers);
  pthread_create(&dancer, NULL, rehearse, &dancers);
  pthread_join(singer, NULL);
  pthread_join(dancer, NULL);
  return rehearsals == 2 ? 0 : 1;
}
