#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "util/files.h"

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

// All children do their work at the moment when this process lets go of the gate.
inline std::vector<int> at_once(int processes, const std::function<int(int)>& work) {
  Pipe gate;
  std::vector<Child> children;
  for (int i = 0; i < processes; ++i)
    children.emplace_back([&, i] {
      gate.write_end.reset();
      char byte = 0;
      return ::read(gate.read_end.get(), &byte, 1) == 0 ? work(i) : 9;
    });
  gate.write_end.reset();
  std::vector<int> statuses;
  for (Child& child : children) statuses.push_back(child.wait());
  return statuses;
}

}  // namespace unflake
