#include "pool.h"

#include <utility>

namespace base {

Pool::Pool(const std::string& name, int workers) {
  idle_.set();
  for (int i = 0; i < workers; ++i)
    workers_.push_back(std::make_unique<Thread>(name + "/" + std::to_string(i), [this] { run(); }));
}

Pool::~Pool() {
  wait_until_idle();
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.set();
  for (const auto& worker : workers_) worker->join();
}

void Pool::submit(Work work, Work done) {
  {
    const Lock lock(mutex_);
    jobs_.push_back({std::move(work), std::move(done)});
    ++unfinished_;
    idle_.reset();
  }
  changed_.set();
}

void Pool::wait_until_idle() {
  idle_.wait();
}

void Pool::run() {
  while (true) {
    changed_.wait();
    run_jobs();
    const Lock lock(mutex_);
    if (stopping_) return;
    if (jobs_.empty()) changed_.reset();
  }
}

void Pool::run_jobs() {
  for (Job job; take(job);) {
    job.work();
    job.done();
    finish_one();
  }
}

bool Pool::take(Job& job) {
  const Lock lock(mutex_);
  if (jobs_.empty()) return false;
  job = std::move(jobs_.front());
  jobs_.pop_front();
  return true;
}

void Pool::finish_one() {
  const Lock lock(mutex_);
  if (--unfinished_ == 0) idle_.set();
}

}  // namespace base
