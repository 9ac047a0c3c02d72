// A pool of named threads that do work and then call back.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sync.h"

namespace base {

class Pool {
 public:
  using Work = std::function<void()>;

  Pool(const std::string& name, int workers);
  // Finishes what was submitted.
  ~Pool();

  // `done` is called by the worker that has done the work.
  void submit(Work work, Work done);
  void wait_until_idle();

 private:
  struct Job {
    Work work, done;
  };

  void run();
  void run_jobs();
  bool take(Job& job);
  void finish_one();

  Mutex mutex_;
  std::deque<Job> jobs_;
  int unfinished_ = 0;
  bool stopping_ = false;
  Event changed_, idle_;
  std::vector<std::unique_ptr<Thread>> workers_;
};

}  // namespace base
