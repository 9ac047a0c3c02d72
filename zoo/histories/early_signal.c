// A consumer waits until something is there.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int items, taken;

static void* consume(void* nothing) {
  pthread_mutex_lock(&guard);
  while (items == 0)  //-
    pthread_cond_wait(&changed, &guard);
  taken = items;
  pthread_mutex_unlock(&guard);
  return nothing;
}

int main(void) {
  pthread_t consumer;
  pthread_create(&consumer, NULL, consume, NULL);
  usleep(20000);
  pthread_mutex_lock(&guard);
  items = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&guard);
  pthread_join(consumer, NULL);
  assert(taken == 1);
  return 0;
}
