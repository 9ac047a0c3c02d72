// A result is awaited.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int result;

static void* compute(void* nothing) {
  usleep(1000);
  pthread_mutex_lock(&guard);
  result = 42;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&guard);
  return nothing;
}

int main(void) {
  pthread_t worker;
  pthread_create(&worker, NULL, compute, NULL);
  struct timespec until;                       //+
  clock_gettime(CLOCK_REALTIME, &until);       //+
  until.tv_nsec += 50000000;                   //+
  until.tv_sec += until.tv_nsec / 1000000000;  //+
  until.tv_nsec %= 1000000000;                 //+
  pthread_mutex_lock(&guard);
  while (result == 0) pthread_cond_wait(&changed, &guard);                     //-
  while (result == 0)                                                          //+
    if (pthread_cond_timedwait(&changed, &guard, &until) == ETIMEDOUT) break;  //+
  const int seen = result;
  pthread_mutex_unlock(&guard);
  assert(seen == 42);
  pthread_join(worker, NULL);
  return 0;
}
