#include "scheduler.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace base {

Scheduler::Scheduler(std::string name) : thread_(std::move(name), [this] { run(); }) {}

Scheduler::~Scheduler() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.set();
  thread_.join();
}

void Scheduler::after(Milliseconds delay, Task task) {
  {
    const Lock lock(mutex_);
    tasks_.emplace(Clock::now() + delay, std::move(task));
  }
  changed_.set();
}

void Scheduler::every(Milliseconds period, Task task) {
  after(period, [this, period, task = std::move(task)] {
    task();
    every(period, task);
  });
}

void Scheduler::drain() {
  const auto done = std::make_shared<Event>();
  post([done] { done->set(); });
  done->wait();
}

void Scheduler::run() {
  while (run_next()) changed_.take_for(until_next());
}

// Does what is due; false: it is time to go.
bool Scheduler::run_next() {
  while (true) {
    Task task;
    {
      const Lock lock(mutex_);
      if (stopping_) return false;
      if (tasks_.empty() || tasks_.begin()->first > Clock::now()) return true;
      task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
    }
    task();
  }
}

Milliseconds Scheduler::until_next() {
  constexpr Milliseconds longest{10'000};
  const Lock lock(mutex_);
  if (tasks_.empty()) return longest;
  const auto left = std::chrono::ceil<Milliseconds>(tasks_.begin()->first - Clock::now());
  return std::clamp(left, Milliseconds(0), longest);
}

}  // namespace base
