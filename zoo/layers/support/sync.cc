#include "sync.h"

#include <errno.h>

#include <cstdlib>
#include <utility>

namespace base {
namespace {

void check(int error) {
  if (error != 0) std::abort();
}

timespec from_now(Milliseconds duration) {
  constexpr long second = 1'000'000'000;
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec += duration.count() / 1000;
  time.tv_nsec += duration.count() % 1000 * 1'000'000;
  time.tv_sec += time.tv_nsec / second;
  time.tv_nsec %= second;
  return time;
}

}  // namespace

void sleep_for(Milliseconds duration) {
  const timespec end = from_now(duration);
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) continue;
}

Mutex::~Mutex() {
  ::pthread_mutex_destroy(&mutex_);
}

void Mutex::lock() {
  check(::pthread_mutex_lock(&mutex_));
}

bool Mutex::try_lock_for(Milliseconds patience) {
  const timespec deadline = from_now(patience);
  return ::pthread_mutex_clocklock(&mutex_, CLOCK_MONOTONIC, &deadline) == 0;
}

void Mutex::unlock() {
  check(::pthread_mutex_unlock(&mutex_));
}

Lock::Lock(Mutex& mutex) : mutex_(mutex) {
  mutex_.lock();
}

Lock::~Lock() {
  mutex_.unlock();
}

Event::~Event() {
  ::pthread_cond_destroy(&changed_);
}

void Event::set() {
  const Lock lock(mutex_);
  set_ = true;
  check(::pthread_cond_broadcast(&changed_));
}

void Event::reset() {
  const Lock lock(mutex_);
  set_ = false;
}

void Event::wait() {
  wait_impl(nullptr, false);
}

bool Event::wait_for(Milliseconds patience) {
  const timespec deadline = from_now(patience);
  return wait_impl(&deadline, false);
}

void Event::take() {
  wait_impl(nullptr, true);
}

bool Event::take_for(Milliseconds patience) {
  const timespec deadline = from_now(patience);
  return wait_impl(&deadline, true);
}

bool Event::wait_impl(const timespec* deadline, bool take) {
  const Lock lock(mutex_);
  int error = 0;
  while (!set_ && error != ETIMEDOUT)
    error = deadline == nullptr
                ? ::pthread_cond_wait(&changed_, &mutex_.mutex_)
                : ::pthread_cond_clockwait(&changed_, &mutex_.mutex_, CLOCK_MONOTONIC, deadline);
  const bool was_set = set_;
  if (take) set_ = false;
  return was_set;
}

Thread::Thread(std::string name, std::function<void()> body)
    : name_(std::move(name)), body_(std::move(body)) {
  check(::pthread_create(&thread_, nullptr, run, this));
}

Thread::~Thread() {
  join();
}

void Thread::join() {
  if (!std::exchange(joinable_, false)) return;
  check(::pthread_join(thread_, nullptr));
}

void* Thread::run(void* self) {
  auto& thread = *static_cast<Thread*>(self);
  ::pthread_setname_np(::pthread_self(), thread.name_.substr(0, 15).c_str());
  thread.body_();
  return nullptr;
}

}  // namespace base
