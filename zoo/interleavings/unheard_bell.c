// The guest looks whether dinner is ready, and only then sits down to listen for the bell.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static atomic_int ready;

static void* wait_for_dinner(void* unused) {
  (void)unused;
  if (ready) return NULL;  // step
  pthread_mutex_lock(&mutex);
  pthread_cond_wait(&bell, &mutex);  // critical
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* serve(void* unused) {
  (void)unused;
  ready = 1;  // step
  pthread_mutex_lock(&mutex);
  pthread_cond_signal(&bell);  // barrier
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  pthread_t cook, guest;
  pthread_create(&cook, NULL, serve, NULL);
  pthread_create(&guest, NULL, wait_for_dinner, NULL);
  pthread_join(cook, NULL);
  pthread_join(guest, NULL);
  return 0;
}
