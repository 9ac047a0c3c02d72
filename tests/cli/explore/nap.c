// The test naps for 20 ms and trusts that the worker is done then.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int is_done;

static void* work(void* nothing) {
  pthread_mutex_lock(&mutex);
  is_done = 1;
  pthread_mutex_unlock(&mutex);
  return nothing;
}

int main(void) {
  pthread_t worker;
  pthread_create(&worker, 0, work, 0);
  usleep(20000);
  pthread_mutex_lock(&mutex);
  assert(is_done);
  pthread_mutex_unlock(&mutex);
  pthread_join(worker, 0);
  return 0;
}
