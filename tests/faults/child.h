#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <utility>

#include "util/unique_fd.h"

namespace unflake {

struct Pipe {
  UniqueFd read_end, write_end;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
};

// A process that does `work` and ends with what it returns.
class Child {
 public:
  explicit Child(const std::function<int()>& work) : pid_(::fork()) {
    if (pid_ == 0) ::_exit(work());
    if (pid_ < 0) throw std::runtime_error("fork failed");
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ > 0) (void)wait();
  }

  void kill() const { ::kill(pid_, SIGKILL); }

  // The exit status, or -1 when a signal ended it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

}  // namespace unflake
