// libunflake-world.so: gives a process another wall clock, random numbers that a seed decides, or
// another number of cores, and nothing else. Loaded only into runs under such conditions.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "protocol/preload_protocol.h"

#define WORLD extern "C" __attribute__((visibility("default")))
#define REAL(name) real_function<decltype(&::name)>(#name)

namespace {

using namespace unflake::protocol;

constexpr int64_t second = 1'000'000'000;

int64_t offset;  // of the wall clock, in ns
uint64_t seed;   // 0: what is random stays so
uint64_t drawn;
long cores;  // 0: as many as there are

int64_t number_in(const char* variable) {
  const char* text = getenv(variable);
  return text == nullptr ? 0 : strtoll(text, nullptr, 10);
}

__attribute__((constructor)) void read_world() {
  offset = number_in(world_clock_variable);
  seed = static_cast<uint64_t>(number_in(world_seed_variable));
  cores = number_in(world_cores_variable);
}

template <class Function>
Function real_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool is_wall_clock(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI ||
         clock == CLOCK_REALTIME_ALARM;
}

int64_t to_ns(const timespec& time) {
  return time.tv_sec * second + time.tv_nsec;
}

timespec to_timespec(int64_t ns) {
  timespec time{static_cast<time_t>(ns / second), static_cast<long>(ns % second)};
  if (time.tv_nsec < 0) {
    time.tv_nsec += second;
    --time.tv_sec;
  }
  return time;
}

int read_clock(clockid_t clock, timespec* time) {
  static const auto real = REAL(clock_gettime);
  const int result = real(clock, time);
  if (result == 0 && time != nullptr && is_wall_clock(clock))
    *time = to_timespec(to_ns(*time) + offset);
  return result;
}

// A moment of the program's clock as the system knows it.
class Moment {
 public:
  Moment(const timespec* time, bool is_shifted) : given_(time) {
    if (time == nullptr || !is_shifted || offset == 0) return;
    if (time->tv_nsec < 0 || time->tv_nsec >= second) return;  // the system will object
    const int64_t ns = to_ns(*time) - offset;
    moved_ = to_timespec(ns > 0 ? ns : 0);
    given_ = &moved_;
  }
  const timespec* get() const { return given_; }

 private:
  const timespec* given_;
  timespec moved_{};
};

uint64_t draw() {
  uint64_t x = __atomic_add_fetch(&drawn, 0x9e3779b97f4a7c15ULL, __ATOMIC_RELAXED) +
               seed * 0x2545f4914f6cdd1dULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

void fill(void* room, size_t size) {
  for (size_t i = 0; i < size; ++i)
    static_cast<unsigned char*>(room)[i] = static_cast<unsigned char>(draw());
}

bool is_random_device(const char* path) {
  return seed != 0 && path != nullptr &&
         (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0);
}

int open_seeded_device(int flags) {
  const int file = memfd_create("random", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
  if (file < 0) return -1;
  char bytes[4096];
  for (off_t at = 0; at < (1 << 20); at += static_cast<off_t>(sizeof bytes)) {
    fill(bytes, sizeof bytes);
    if (pwrite(file, bytes, sizeof bytes, at) < 0) break;
  }
  return file;
}

}  // namespace

WORLD int clock_gettime(clockid_t clock, timespec* time) noexcept {
  return read_clock(clock, time);
}

WORLD time_t time(time_t* result) noexcept {
  timespec now{};
  read_clock(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

WORLD int gettimeofday(timeval* time, void* zone) noexcept {
  static const auto real = real_function<int (*)(timeval*, void*)>("gettimeofday");
  if (zone != nullptr) real(nullptr, zone);
  timespec now{};
  const int result = read_clock(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return result;
}

WORLD int timespec_get(timespec* time, int base) noexcept {
  if (base != TIME_UTC) return 0;
  return read_clock(CLOCK_REALTIME, time) == 0 ? base : 0;
}

// Waits until a moment: of the program's clock, which the system does not know.
WORLD int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                 const timespec* time) {
  static const auto real = REAL(pthread_cond_timedwait);
  const bool is_monotonic = (condition->__data.__wrefs & 2U) != 0;  // as glibc keeps it
  return real(condition, mutex, Moment(time, !is_monotonic).get());
}

WORLD int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                 const timespec* time) {
  static const auto real = REAL(pthread_cond_clockwait);
  return real(condition, mutex, clock, Moment(time, is_wall_clock(clock)).get());
}

WORLD int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) noexcept {
  static const auto real = REAL(pthread_mutex_timedlock);
  return real(mutex, Moment(time, true).get());
}

WORLD int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* time) noexcept {
  static const auto real = REAL(pthread_rwlock_timedrdlock);
  return real(lock, Moment(time, true).get());
}

WORLD int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* time) noexcept {
  static const auto real = REAL(pthread_rwlock_timedwrlock);
  return real(lock, Moment(time, true).get());
}

WORLD int sem_timedwait(sem_t* semaphore, const timespec* time) {
  static const auto real = REAL(sem_timedwait);
  return real(semaphore, Moment(time, true).get());
}

WORLD int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* rest) {
  static const auto real = REAL(clock_nanosleep);
  const bool is_moment = (flags & TIMER_ABSTIME) != 0 && is_wall_clock(clock);
  return real(clock, flags, Moment(time, is_moment).get(), rest);
}

WORLD ssize_t getrandom(void* room, size_t size, unsigned flags) {
  static const auto real = REAL(getrandom);
  if (seed == 0) return real(room, size, flags);
  fill(room, size);
  return static_cast<ssize_t>(size);
}

WORLD int getentropy(void* room, size_t size) {
  static const auto real = REAL(getentropy);
  if (seed == 0 || size > 256) return real(room, size);
  fill(room, size);
  return 0;
}

WORLD uint32_t arc4random() noexcept {
  static const auto real = real_function<uint32_t (*)()>("arc4random");
  return seed == 0 ? real() : static_cast<uint32_t>(draw());
}

WORLD uint32_t arc4random_uniform(uint32_t below) noexcept {
  static const auto real = real_function<uint32_t (*)(uint32_t)>("arc4random_uniform");
  if (seed == 0) return real(below);
  return below == 0 ? 0 : static_cast<uint32_t>(draw() % below);
}

WORLD void arc4random_buf(void* room, size_t size) noexcept {
  static const auto real = real_function<void (*)(void*, size_t)>("arc4random_buf");
  if (seed == 0)
    real(room, size);
  else
    fill(room, size);
}

// std::random_device::_M_getval(), which may ask the processor itself.
WORLD unsigned _ZNSt13random_device9_M_getvalEv(void* device) {
  static const auto real = real_function<unsigned (*)(void*)>("_ZNSt13random_device9_M_getvalEv");
  return seed == 0 ? real(device) : static_cast<unsigned>(draw());
}

// What std::thread::hardware_concurrency() asks, and most pools.
WORLD int get_nprocs() noexcept {
  static const auto real = REAL(get_nprocs);
  return cores > 0 ? static_cast<int>(cores) : real();
}

WORLD int get_nprocs_conf() noexcept {
  static const auto real = REAL(get_nprocs_conf);
  return cores > 0 ? static_cast<int>(cores) : real();
}

WORLD long sysconf(int name) noexcept {
  static const auto real = REAL(sysconf);
  const bool asks_for_cores = name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF;
  return cores > 0 && asks_for_cores ? cores : real(name);
}

#define OPEN_HOOK(name)                                                            \
  WORLD int name(const char* path, int flags, ...) {                               \
    static const auto real = real_function<int (*)(const char*, int, ...)>(#name); \
    if (is_random_device(path)) return open_seeded_device(flags);                  \
    va_list more;                                                                  \
    va_start(more, flags);                                                         \
    const auto mode = va_arg(more, unsigned);                                      \
    va_end(more);                                                                  \
    return real(path, flags, mode);                                                \
  }

OPEN_HOOK(open)
OPEN_HOOK(open64)

#define FOPEN_HOOK(name)                                                                \
  WORLD FILE* name(const char* path, const char* mode) {                                \
    static const auto real = real_function<FILE* (*)(const char*, const char*)>(#name); \
    return is_random_device(path) ? fdopen(open_seeded_device(O_CLOEXEC), mode)         \
                                  : real(path, mode);                                   \
  }

FOPEN_HOOK(fopen)
FOPEN_HOOK(fopen64)
