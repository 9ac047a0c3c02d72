#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace unflake {

// Threads of another process, stopped as long as this lives. Waits for none longer than the
// deadline: a thread inside of the kernel need not stop.
class Tracer {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  struct Thread {
    pid_t tid = 0;
    bool is_stopped = false;
    int signal = 0;  // that it was about to be given, and is given when it goes on
    std::string why_not;
  };

  Tracer(pid_t process, size_t most_threads, Deadline deadline);
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  ~Tracer();

  const std::vector<Thread>& threads() const { return threads_; }
  std::optional<user_regs_struct> registers(pid_t tid) const;

 private:
  void seize_new(size_t most_threads);
  void wait_for_stops(Deadline deadline);
  void let_go(const Thread& thread) const;

  pid_t process_;
  bool is_child_;
  std::vector<Thread> threads_;
};

}  // namespace unflake
