// The guest looks under the lock with which the bell is rung, and listens until dinner is ready.
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static int ready;

static void* wait_for_dinner(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  while (!ready) pthread_cond_wait(&bell, &mutex);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* serve(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  ready = 1;
  pthread_cond_signal(&bell);
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
