#include "letter.h"

#include <pthread.h>

static pthread_mutex_t box = PTHREAD_MUTEX_INITIALIZER;
static int letters;

void letter_put(void) {
  pthread_mutex_lock(&box);
  ++letters;
  pthread_mutex_unlock(&box);
}

int letter_is_there(void) {
  pthread_mutex_lock(&box);
  const int there = letters > 0;
  pthread_mutex_unlock(&box);
  return there;
}
