// Sensors store a temperature and its check value under one lock, and a display reads both under
// it.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

enum { sensors = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int temperature;
static int check_value;

static void* measure(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  temperature = 21;
  check_value = -21;
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* show(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  assert(temperature + check_value == 0);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  pthread_t threads[sensors + 1];
  for (int i = 0; i < sensors; ++i) pthread_create(&threads[i], NULL, measure, NULL);
  pthread_create(&threads[sensors], NULL, show, NULL);
  for (int i = 0; i <= sensors; ++i) pthread_join(threads[i], NULL);
  return 0;
}
