// A letter is delivered by another thread.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int delivered;

static void* carry(void* nothing) {
  usleep(2000);
  __atomic_store_n(&delivered, 1, __ATOMIC_SEQ_CST);
  return nothing;
}

int main(void) {
  pthread_t carrier;
  pthread_create(&carrier, NULL, carry, NULL);
  pthread_join(carrier, NULL);  //-
  usleep(30000);                //+
  assert(__atomic_load_n(&delivered, __ATOMIC_SEQ_CST) == 1);
  pthread_join(carrier, NULL);  //+
  return 0;
}
