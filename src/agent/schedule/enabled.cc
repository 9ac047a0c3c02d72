#include "agent/schedule/enabled.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/wait.h>

#include "agent/raw.h"

namespace unflake::agent {
namespace {

// glibc's words, as they have been since its version 2.25.

constexpr int robust = 16, priority_inherited = 32, kind_mask = 3;

template <class T>
T read(const volatile void* address, size_t offset = 0) {
  return __atomic_load_n(
      reinterpret_cast<const T*>(
          const_cast<const char*>(static_cast<const volatile char*>(address)) + offset),
      __ATOMIC_ACQUIRE);
}

const pthread_mutex_t& as_mutex(const volatile void* address) {
  return *static_cast<const pthread_mutex_t*>(const_cast<const void*>(address));
}
const pthread_rwlock_t& as_rwlock(const volatile void* address) {
  return *static_cast<const pthread_rwlock_t*>(const_cast<const void*>(address));
}

const Participant& as_thread(const volatile void* address) {
  return *static_cast<const Participant*>(const_cast<const void*>(address));
}

uint32_t mutex_word(const pthread_mutex_t& mutex) {
  return static_cast<uint32_t>(read<int>(&mutex.__data.__lock));
}

uint32_t mutex_owner(const pthread_mutex_t& mutex) {
  if ((mutex.__data.__kind & (robust | priority_inherited)) != 0)
    return mutex_word(mutex) & FUTEX_TID_MASK;
  return static_cast<uint32_t>(read<int>(&mutex.__data.__owner));
}

bool is_free(const pthread_mutex_t& mutex, uint32_t tid) {
  const uint32_t word = mutex_word(mutex);
  if (word == 0) return true;
  const int kind = mutex.__data.__kind;
  if ((kind & (robust | priority_inherited)) != 0 && (word & FUTEX_OWNER_DIED) != 0) return true;
  const bool answers_owner = (kind & kind_mask) == PTHREAD_MUTEX_RECURSIVE_NP ||
                             (kind & kind_mask) == PTHREAD_MUTEX_ERRORCHECK_NP;
  return answers_owner && mutex_owner(mutex) == tid;
}

// Who has it himself gets an error at once.
bool can_read(const pthread_rwlock_t& lock, uint32_t tid) {
  const auto writer = static_cast<uint32_t>(read<int>(&lock.__data.__cur_writer));
  return writer == 0 || writer == tid;
}
bool can_write(const pthread_rwlock_t& lock, uint32_t tid) {
  const auto writer = static_cast<uint32_t>(read<int>(&lock.__data.__cur_writer));
  return writer == tid || (writer == 0 && read<unsigned>(&lock.__data.__readers) >> 3 == 0);
}

bool has_event(const Step& step) {
  return raw_syscall(__NR_poll, as_word(step.descriptors), step.descriptor_count, 0) != 0;
}

bool has_news_of_child(int type, int id, int options) {
  siginfo_t info{};
  const long result =
      raw_syscall(__NR_waitid, type, id, as_word(&info), options | WNOHANG | WNOWAIT, 0);
  return failed(result) || info.si_pid != 0;
}

}  // namespace

bool is_ready(const Participant& thread) {
  if (thread.returned.load() != 0 || thread.interrupted) return true;
  const Step& step = thread.next;
  const uint32_t tid = thread.tid.load();
  switch (step.wait) {
    case Wait::nothing:
      return true;
    case Wait::mutex:
      return is_free(as_mutex(step.address), tid);
    case Wait::spin_lock:
      return read<int>(step.address) > 0;
    case Wait::reader:
      return can_read(as_rwlock(step.address), tid);
    case Wait::writer:
      return can_write(as_rwlock(step.address), tid);
    case Wait::semaphore:
      return read<uint32_t>(step.address) > 0;
    case Wait::once:
      return (read<int>(step.address) & 3) != 1;
    case Wait::thread:
      return as_thread(step.address).life == Life::ended;
    case Wait::descriptors:
      return has_event(step);
    case Wait::child:
      return has_news_of_child(step.id_type, step.id, step.options);
    case Wait::condition:
    case Wait::barrier:
    case Wait::futex:
      return thread.woken;
    case Wait::sleep:
    case Wait::outside:
      return false;
  }
  return false;
}

bool may_time_out(const Participant& thread) {
  const Step& step = thread.next;
  if (step.deadline == forever) return false;
  return step.wait != Wait::condition || is_free(*step.mutex, thread.tid.load());
}

uint32_t holder_of_object(const Step& step) {
  switch (step.wait) {
    case Wait::mutex:
      return mutex_owner(as_mutex(step.address));
    case Wait::reader:
    case Wait::writer:
      return static_cast<uint32_t>(read<int>(&as_rwlock(step.address).__data.__cur_writer));
    case Wait::thread:
      return as_thread(step.address).tid.load();
    default:
      return 0;
  }
}

bool has_children() {
  siginfo_t info{};
  return raw_syscall(__NR_waitid, P_ALL, 0, as_word(&info), WEXITED | WNOHANG | WNOWAIT, 0) !=
         -ECHILD;
}

}  // namespace unflake::agent
