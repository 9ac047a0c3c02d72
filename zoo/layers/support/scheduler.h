// Tasks for later, done one after the other by a thread of the scheduler's own.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "sync.h"

namespace base {

class Scheduler {
 public:
  using Task = std::function<void()>;

  explicit Scheduler(std::string name);
  // What is not due yet is dropped.
  ~Scheduler();

  void post(Task task) { after(Milliseconds(0), std::move(task)); }
  void after(Milliseconds delay, Task task);
  void every(Milliseconds period, Task task);
  // Returns when everything that was due at the call has been done.
  void drain();

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  bool run_next();
  Milliseconds until_next();

  Mutex mutex_;
  std::multimap<Clock::time_point, Task> tasks_;
  bool stopping_ = false;
  Event changed_;
  Thread thread_;
};

}  // namespace base
