// Two accounts, two transfers.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static int transfers;

static void* there(void* nothing) {
  pthread_mutex_lock(&left);
  pthread_mutex_lock(&right);
  ++transfers;
  pthread_mutex_unlock(&right);
  pthread_mutex_unlock(&left);
  return nothing;
}

static void* back(void* nothing) {
  pthread_mutex_lock(&left);  //-
  pthread_mutex_lock(&right);
  pthread_mutex_lock(&left);  //+
  ++transfers;
  pthread_mutex_unlock(&left);
  pthread_mutex_unlock(&right);
  return nothing;
}

int main(void) {
  pthread_t one, other;
  pthread_create(&one, NULL, there, NULL);
  usleep(2000);
  pthread_create(&other, NULL, back, NULL);
  pthread_join(one, NULL);
  pthread_join(other, NULL);
  assert(transfers == 2);
  return 0;
}
