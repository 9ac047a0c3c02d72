// Somebody waits for a flag.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int ready;

static void* prepare(void* nothing) {
  usleep(1000);
  __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
  return nothing;
}

int main(void) {
  pthread_t worker;
  pthread_create(&worker, NULL, prepare, NULL);
  while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST)) usleep(1000);                          //-
  for (int i = 0; i < 30 && !__atomic_load_n(&ready, __ATOMIC_SEQ_CST); ++i) usleep(1000);  //+
  assert(__atomic_load_n(&ready, __ATOMIC_SEQ_CST));
  pthread_join(worker, NULL);
  return 0;
}
