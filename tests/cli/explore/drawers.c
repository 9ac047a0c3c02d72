// Two clerks open two drawers, each in another order: they may wait for each other for ever.
#include <pthread.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;

static void* open_left_first(void* nothing) {
  pthread_mutex_lock(&left);
  pthread_mutex_lock(&right);
  pthread_mutex_unlock(&right);
  pthread_mutex_unlock(&left);
  return nothing;
}

static void* open_right_first(void* nothing) {
  pthread_mutex_lock(&right);
  pthread_mutex_lock(&left);
  pthread_mutex_unlock(&left);
  pthread_mutex_unlock(&right);
  return nothing;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, open_left_first, 0);
  pthread_create(&b, 0, open_right_first, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
