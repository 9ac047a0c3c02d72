// The cook takes the knife and then the board, the baker the board and then the knife.
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t knife = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t board = PTHREAD_MUTEX_INITIALIZER;
static int slices;

static void* cook(void* unused) {
  (void)unused;
  pthread_mutex_lock(&knife);  // step
  pthread_mutex_lock(&board);  // critical
  slices += 4;
  pthread_mutex_unlock(&board);
  pthread_mutex_unlock(&knife);
  return NULL;
}

static void* bake(void* unused) {
  (void)unused;
  pthread_mutex_lock(&board);  // barrier
  pthread_mutex_lock(&knife);  // step
  slices += 8;
  pthread_mutex_unlock(&knife);
  pthread_mutex_unlock(&board);
  return NULL;
}

int main(void) {
  pthread_t at_stove, at_oven;
  pthread_create(&at_stove, NULL, cook, NULL);
  pthread_create(&at_oven, NULL, bake, NULL);
  pthread_join(at_stove, NULL);
  pthread_join(at_oven, NULL);
  return slices == 12 ? 0 : 1;
}
