// A sensor stores a temperature and then its check value; a display that looks in between sees half
// a reading. Every further sensor that is done in the meantime mends it.
#pragma once

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static int temperature;
static int check_value;

static void* measure(void* unused) {
  (void)unused;
  temperature = 21;   // step
  check_value = -21;  // critical
  return NULL;
}

static void* show(void* unused) {
  (void)unused;
  const int shown = temperature;    // step
  const int checked = check_value;  // barrier
  assert(shown + checked == 0);     // fails here
  return NULL;
}

static int watch_station(int sensors) {
  pthread_t sensor[32], display;
  for (int i = 0; i < sensors; ++i) pthread_create(&sensor[i], NULL, measure, NULL);
  pthread_create(&display, NULL, show, NULL);
  for (int i = 0; i < sensors; ++i) pthread_join(sensor[i], NULL);
  pthread_join(display, NULL);
  return 0;
}
