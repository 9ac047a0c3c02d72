// Waits for up to four seconds for what takes milliseconds, as a sound test may.
#include <assert.h>
#include <pthread.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_done;

static void *work(void *nothing) {
  const struct timespec a_while = {0, 5000000};
  nanosleep(&a_while, NULL);
  pthread_mutex_lock(&mutex);
  is_done = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  return nothing;
}

int main(void) {
  pthread_t worker;
  pthread_create(&worker, NULL, work, NULL);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 4;
  pthread_mutex_lock(&mutex);
  while (!is_done && pthread_cond_timedwait(&changed, &mutex, &until) == 0) {}
  assert(is_done);
  pthread_mutex_unlock(&mutex);
  pthread_join(worker, NULL);
}
