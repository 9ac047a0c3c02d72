// Hopes that 50 ms are enough for another thread.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int delivered;

static void* carry(void* unused) {
  usleep(1000);
  __atomic_store_n(&delivered, 1, __ATOMIC_SEQ_CST);
  return unused;
}

static pthread_t send_letter(void) {
  pthread_t carrier;
  pthread_create(&carrier, NULL, carry, NULL);
  return carrier;
}

int main(void) {
  pthread_t carrier = send_letter();
  usleep(50000);
  assert(__atomic_load_n(&delivered, __ATOMIC_SEQ_CST) == 1);
  pthread_join(carrier, NULL);
  return 0;
}
