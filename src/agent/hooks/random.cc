#include "agent/hooks/random.h"

#include <sys/types.h>

#include "agent/real.h"
#include "agent/record/visit.h"
#include "agent/schedule/turns.h"

namespace unflake::agent {

using protocol::Api;

namespace {

bool drawn = false;

void fill_by_seed(void* room, size_t size) {
  for (size_t i = 0; i < size; ++i)
    static_cast<unsigned char*>(room)[i] = static_cast<unsigned char>(draw_by_seed());
}

void note_draw() {
  __atomic_store_n(&drawn, true, __ATOMIC_RELAXED);
}

}  // namespace

bool random_was_drawn() {
  return __atomic_load_n(&drawn, __ATOMIC_RELAXED);
}

HOOK(ssize_t, getrandom, (void* room, size_t size, unsigned flags)) {
  Visit visit(Api::getrandom, CALLER);
  note_draw();
  if (!is_controlled()) return visit.leave(real::getrandom(room, size, flags));
  fill_by_seed(room, size);
  return visit.leave(static_cast<ssize_t>(size));
}

HOOK(int, getentropy, (void* room, size_t size)) {
  Visit visit(Api::getentropy, CALLER);
  note_draw();
  if (!is_controlled() || size > 256) return visit.leave(real::getentropy(room, size));
  fill_by_seed(room, size);
  return visit.leave(0);
}

PLAIN_HOOK(int, rand, (), ())
PLAIN_HOOK(long, random, (), ())

// std::random_device::_M_getval(), which may read the processor's own generator.
HOOK(unsigned, _ZNSt13random_device9_M_getvalEv, (void* device)) {
  resolve_real_functions();
  note_draw();
  if (is_controlled()) return static_cast<unsigned>(draw_by_seed());
  return real::_ZNSt13random_device9_M_getvalEv(device);
}

}  // namespace unflake::agent
