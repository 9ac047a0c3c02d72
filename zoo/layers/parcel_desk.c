// A courier brings parcels to a shelf, and a clerk takes them from there.
#include <stdlib.h>

#include "support/port.h"

enum { parcels_to_come = 2 };

typedef struct {
  port_mutex mutex;
  port_cond arrived;
  int parcels;
} shelf;

static void shelf_init(shelf* self) {
  port_mutex_init(&self->mutex);
  port_cond_init(&self->arrived);
  self->parcels = 0;
}

static void shelf_put(shelf* self) {
  port_mutex_lock(&self->mutex);
  ++self->parcels;
  port_cond_signal(&self->arrived);
  port_mutex_unlock(&self->mutex);
}

static int shelf_take_all(shelf* self) {
  port_mutex_lock(&self->mutex);
  const int taken = self->parcels;
  self->parcels = 0;
  port_mutex_unlock(&self->mutex);
  return taken;
}

static void shelf_wait(shelf* self) {
  port_mutex_lock(&self->mutex);
  port_cond_wait(&self->arrived, &self->mutex);
  port_mutex_unlock(&self->mutex);
}

static void courier(void* argument) {
  shelf* desk = argument;
  for (int i = 0; i < parcels_to_come; ++i) {
    port_sleep_ms(30);
    shelf_put(desk);  // barrier
  }
}

static void clerk(void* argument) {
  shelf* desk = argument;
  for (int handled = 0; handled < parcels_to_come;) {
    const int taken = shelf_take_all(desk);
    handled += taken;
    if (taken == 0) shelf_wait(desk);  // critical
  }
}

int main(void) {
  shelf desk;
  port_thread courier_thread, clerk_thread;
  shelf_init(&desk);
  port_thread_start(&clerk_thread, "clerk", clerk, &desk);
  port_thread_start(&courier_thread, "courier", courier, &desk);
  port_thread_join(courier_thread);
  port_thread_join(clerk_thread);
  return EXIT_SUCCESS;
}
