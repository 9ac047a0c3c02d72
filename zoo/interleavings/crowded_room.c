// A reader looks for a writer and comes in; a writer counts the readers and comes in. Each is safe
// by itself.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int readers;
static atomic_int writing;
static atomic_int collisions;

static void* read_page(void* unused) {
  (void)unused;
  if (writing) return NULL;  // barrier
  readers += 1;              // step
  collisions += writing;     // step
  readers -= 1;
  return NULL;
}

static void* write_page(void* unused) {
  (void)unused;
  if (readers > 0) return NULL;  // step
  writing = 1;                   // critical
  writing = 0;                   // step
  return NULL;
}

int main(void) {
  pthread_t reader, writer;
  pthread_create(&reader, NULL, read_page, NULL);
  pthread_create(&writer, NULL, write_page, NULL);
  pthread_join(reader, NULL);
  pthread_join(writer, NULL);
  if (collisions == 0) return EXIT_SUCCESS;
  fprintf(stderr, "a reader met a writer\n");
  return EXIT_FAILURE;
}
