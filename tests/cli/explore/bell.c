// A guest waits for a bell and looks first whether it has rung already: sound in every order.
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static int has_rung;

static void* ring(void* nothing) {
  pthread_mutex_lock(&mutex);
  has_rung = 1;
  pthread_cond_signal(&bell);
  pthread_mutex_unlock(&mutex);
  return nothing;
}

int main(void) {
  pthread_t ringer;
  pthread_create(&ringer, 0, ring, 0);
  pthread_mutex_lock(&mutex);
  while (!has_rung) pthread_cond_wait(&bell, &mutex);
  pthread_mutex_unlock(&mutex);
  pthread_join(ringer, 0);
  return 0;
}
