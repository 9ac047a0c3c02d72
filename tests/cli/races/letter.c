// A letter is written before an atomic flag says so, and a counter has one lock.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static int letter, read_letters;
static atomic_int has_come;
static pthread_mutex_t desk = PTHREAD_MUTEX_INITIALIZER;

static void count(void) {
  pthread_mutex_lock(&desk);
  read_letters += 1;
  pthread_mutex_unlock(&desk);
}

static void* send(void* nothing) {
  letter = 7;
  atomic_store_explicit(&has_come, 1, memory_order_release);
  count();
  return nothing;
}

static void* fetch(void* nothing) {
  while (!atomic_load_explicit(&has_come, memory_order_acquire)) sched_yield();
  count();
  return letter == 7 ? nothing : &letter;
}

int main(void) {
  pthread_t sender, reader;
  pthread_create(&sender, 0, send, 0);
  pthread_create(&reader, 0, fetch, 0);
  pthread_join(sender, 0);
  pthread_join(reader, 0);
  return 0;
}
