// There are two permits, and each of two builders needs two. They ask for them one by one.
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>

static sem_t permits;
static int built[2];

static void* build(void* house) {
  sem_wait(&permits);  // barrier
  sem_wait(&permits);  // critical
  *(int*)house = 1;
  sem_post(&permits);
  sem_post(&permits);
  return NULL;
}

int main(void) {
  pthread_t builders[2];
  sem_init(&permits, 0, 2);
  for (int i = 0; i < 2; ++i) pthread_create(&builders[i], NULL, build, &built[i]);
  for (int i = 0; i < 2; ++i) pthread_join(builders[i], NULL);
  sem_destroy(&permits);
  return built[0] + built[1] == 2 ? 0 : 1;
}
