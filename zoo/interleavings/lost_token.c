// Three nodes hand a token round. A guard that finds it nowhere makes a new one, and it may just be
// on its way.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

enum { nodes = 3 };

static atomic_int has_token[nodes] = {1, 0, 0};

static void* node(void* place) {
  atomic_int* mine = place;
  atomic_int* next = mine == &has_token[nodes - 1] ? &has_token[0] : mine + 1;
  if (*mine == 0) return NULL;
  *mine = 0;  // step
  *next = 1;  // critical
  return NULL;
}

static void* guard(void* unused) {
  (void)unused;
  for (int i = 0; i < nodes; ++i)
    if (has_token[i]) return NULL;  // barrier
  has_token[0] = 1;
  return NULL;
}

int main(void) {
  pthread_t threads[nodes + 1];
  for (int i = 0; i < nodes; ++i) pthread_create(&threads[i], NULL, node, &has_token[i]);
  pthread_create(&threads[nodes], NULL, guard, NULL);
  for (int i = 0; i <= nodes; ++i) pthread_join(threads[i], NULL);
  assert(has_token[0] + has_token[1] + has_token[2] == 1);  // fails here
  return 0;
}
