// Threads, locks and events as a company's own base library has them.
#pragma once

#include <pthread.h>
#include <time.h>

#include <chrono>
#include <functional>
#include <string>

namespace base {

using Milliseconds = std::chrono::milliseconds;

void sleep_for(Milliseconds duration);

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex();

  void lock();
  bool try_lock_for(Milliseconds patience);
  void unlock();

 private:
  friend class Event;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class Lock {
 public:
  explicit Lock(Mutex& mutex);
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock();

 private:
  Mutex& mutex_;
};

// Stays set until somebody takes or resets it.
class Event {
 public:
  ~Event();

  void set();
  void reset();
  void wait();
  bool wait_for(Milliseconds patience);
  // Waits, and resets it for the next one.
  void take();
  bool take_for(Milliseconds patience);

 private:
  bool wait_impl(const timespec* deadline, bool take);

  Mutex mutex_;
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
  bool set_ = false;
};

// Has a name that debuggers show, and is joined when it goes out of scope.
class Thread {
 public:
  Thread(std::string name, std::function<void()> body);
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread();

  void join();

 private:
  static void* run(void* self);

  std::string name_;
  std::function<void()> body_;
  pthread_t thread_{};
  bool joinable_ = true;
};

}  // namespace base
