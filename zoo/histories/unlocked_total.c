// Two threads add to a total.
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void* add(void* amount) {
  pthread_mutex_lock(&guard);
  const int before = total;
  pthread_mutex_unlock(&guard);  //+
  pthread_mutex_lock(&guard);    //+
  total = before + *(int*)amount;
  pthread_mutex_unlock(&guard);
  return NULL;
}

int main(void) {
  int one = 1, two = 2;
  pthread_t first, second;
  pthread_create(&first, NULL, add, &one);
  pthread_create(&second, NULL, add, &two);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  assert(total == 3);
  return 0;
}
