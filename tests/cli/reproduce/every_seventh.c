// Fails in every seventh run, whoever is late: as often as by chance, and always alike.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int runs;

static void *count(void *nothing) {
  pthread_mutex_lock(&mutex);
  FILE *file = fopen("runs", "r");
  if (file && fscanf(file, "%d", &runs) != 1) runs = 0;
  if (file) fclose(file);
  file = fopen("runs", "w");
  fprintf(file, "%d", runs + 1);
  fclose(file);
  pthread_mutex_unlock(&mutex);
  return nothing;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, count, NULL);
  pthread_join(thread, NULL);
  assert(runs % 7 != 6);
}
