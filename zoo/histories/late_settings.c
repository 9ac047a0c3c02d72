// A thread reads the settings.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int port;

static void* serve(void* seen) {
  usleep(5000);
  *(int*)seen = __atomic_load_n(&port, __ATOMIC_SEQ_CST);
  return NULL;
}

int main(void) {
  int seen = 0;
  pthread_t server;
  __atomic_store_n(&port, 80, __ATOMIC_SEQ_CST);  //-
  pthread_create(&server, NULL, serve, &seen);
  __atomic_store_n(&port, 80, __ATOMIC_SEQ_CST);  //+
  pthread_join(server, NULL);
  assert(seen == 80);
  return 0;
}
