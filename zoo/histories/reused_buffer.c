// A logger keeps a message until it was written.
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static char buffer[16];
static char written[16];

static void* log_message(void* nothing) {
  usleep(1000);
  pthread_mutex_lock(&guard);
  strcpy(written, buffer);
  pthread_mutex_unlock(&guard);
  return nothing;
}

int main(void) {
  pthread_t logger;
  strcpy(buffer, "first");
  pthread_create(&logger, NULL, log_message, NULL);
  pthread_join(logger, NULL);  //-
  usleep(25000);               //+
  pthread_mutex_lock(&guard);
  strcpy(buffer, "second");
  pthread_mutex_unlock(&guard);
  pthread_join(logger, NULL);  //+
  assert(strcmp(written, "first") == 0);
  return 0;
}
