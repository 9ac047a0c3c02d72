// A clerk counts the goods under one lock and prints the label under another; an inspector who
// comes in between finds goods with an old label. Every further clerk who is done in the meantime
// mends it.
#pragma once

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t goods_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t label_lock = PTHREAD_MUTEX_INITIALIZER;
static int goods;
static int label;

static void* deliver(void* unused) {
  (void)unused;
  pthread_mutex_lock(&goods_lock);
  goods = 12;
  pthread_mutex_unlock(&goods_lock);  // step
  pthread_mutex_lock(&label_lock);    // critical
  label = 12;
  pthread_mutex_unlock(&label_lock);
  return NULL;
}

static void* inspect(void* unused) {
  (void)unused;
  pthread_mutex_lock(&goods_lock);  // step
  const int counted = goods;
  pthread_mutex_unlock(&goods_lock);
  pthread_mutex_lock(&label_lock);
  const int printed = label;
  pthread_mutex_unlock(&label_lock);           // barrier
  assert(printed == counted || counted == 0);  // fails here
  return NULL;
}

static int run_warehouse(int clerks) {
  pthread_t clerk[128], inspector;
  for (int i = 0; i < clerks; ++i) pthread_create(&clerk[i], NULL, deliver, NULL);
  pthread_create(&inspector, NULL, inspect, NULL);
  for (int i = 0; i < clerks; ++i) pthread_join(clerk[i], NULL);
  pthread_join(inspector, NULL);
  return 0;
}
