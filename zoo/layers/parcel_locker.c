// A courier brings parcels to a locker, and an owner takes them from there.
#include <stdlib.h>

#include "support/port.h"

enum { parcels_to_come = 2 };

typedef struct {
  port_mutex mutex;
  port_cond arrived;
  int parcels;
} locker;

static void locker_init(locker* self) {
  port_mutex_init(&self->mutex);
  port_cond_init(&self->arrived);
  self->parcels = 0;
}

static void locker_put(locker* self) {
  port_mutex_lock(&self->mutex);
  ++self->parcels;
  port_cond_signal(&self->arrived);
  port_mutex_unlock(&self->mutex);
}

static int locker_take_all(locker* self) {
  port_mutex_lock(&self->mutex);
  while (self->parcels == 0) port_cond_wait(&self->arrived, &self->mutex);
  const int taken = self->parcels;
  self->parcels = 0;
  port_mutex_unlock(&self->mutex);
  return taken;
}

static void courier(void* argument) {
  for (int i = 0; i < parcels_to_come; ++i) {
    port_sleep_ms(30);
    locker_put(argument);
  }
}

static void owner(void* argument) {
  for (int taken = 0; taken < parcels_to_come;) taken += locker_take_all(argument);
}

int main(void) {
  locker home;
  port_thread courier_thread, owner_thread;
  locker_init(&home);
  port_thread_start(&owner_thread, "owner", owner, &home);
  port_thread_start(&courier_thread, "courier", courier, &home);
  port_thread_join(courier_thread);
  port_thread_join(owner_thread);
  return EXIT_SUCCESS;
}
