#include "agent/hooks/hooks.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "agent/raw.h"
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

// libc's own generator asks the system in its own way.
HOOK(uint32_t, arc4random, ()) {
  resolve_real_functions();
  note_draw();
  return is_controlled() ? static_cast<uint32_t>(draw_by_seed()) : real::arc4random();
}

HOOK(uint32_t, arc4random_uniform, (uint32_t below)) {
  resolve_real_functions();
  note_draw();
  if (!is_controlled()) return real::arc4random_uniform(below);
  return below == 0 ? 0 : static_cast<uint32_t>(draw_by_seed() % below);
}

HOOK(void, arc4random_buf, (void* room, size_t size)) {
  resolve_real_functions();
  note_draw();
  if (is_controlled())
    fill_by_seed(room, size);
  else
    real::arc4random_buf(room, size);
}

bool is_random_device(const char* path) {
  return path != nullptr && (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0);
}

int open_seeded_device(int flags) {
  constexpr size_t enough = 1 << 20;
  constexpr size_t at_once = 4096;
  const unsigned closes = (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0;
  const long file = raw_syscall(__NR_memfd_create, as_word("random"), closes);
  if (failed(file)) return -1;
  char bytes[at_once];
  for (size_t written = 0; written < enough; written += at_once) {
    fill_by_seed(bytes, at_once);
    raw_syscall(__NR_pwrite64, file, as_word(bytes), at_once, static_cast<long>(written));
  }
  return static_cast<int>(file);
}

#define FOPEN_HOOK(name)                                                            \
  HOOK(FILE*, name, (const char* path, const char* mode)) {                         \
    resolve_real_functions();                                                       \
    if (!is_controlled() || !is_random_device(path)) return real::name(path, mode); \
    return ::fdopen(open_seeded_device(O_CLOEXEC), mode);                           \
  }

FOPEN_HOOK(fopen)
FOPEN_HOOK(fopen64)

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
