// A message comes through a pipe.
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static int ends[2];

static void* send_message(void* nothing) {
  usleep(1000);
  assert(write(ends[1], "x", 1) == 1);
  return nothing;
}

int main(void) {
  assert(pipe(ends) == 0);
  pthread_t sender;
  pthread_create(&sender, NULL, send_message, NULL);
  struct pollfd readable = {ends[0], POLLIN, 0};
  const int ready = poll(&readable, 1, -1);  //-
  const int ready = poll(&readable, 1, 40);  //+
  assert(ready == 1);
  pthread_join(sender, NULL);
  return 0;
}
