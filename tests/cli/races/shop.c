// Two clerks count what they sell, each under a lock of his own.
#include <pthread.h>
#include <stdatomic.h>

static struct {
  int opened;
  int sold[2];
  atomic_int asked;
} shop;

static pthread_mutex_t one_door = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_door = PTHREAD_MUTEX_INITIALIZER;

static void* sell(void* door) {
  shop.asked = 1;
  pthread_mutex_lock(door);
  shop.sold[1] += 1;
  pthread_mutex_unlock(door);
  return 0;
}

int main(void) {
  pthread_t clerks[2];
  pthread_create(&clerks[0], 0, sell, &one_door);
  pthread_create(&clerks[1], 0, sell, &other_door);
  pthread_join(clerks[0], 0);
  pthread_join(clerks[1], 0);
  return shop.opened;
}
