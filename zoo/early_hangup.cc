// A daemon is told to read its settings again; before it is prepared for that, it dies of it.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using std::chrono::milliseconds;

volatile std::sig_atomic_t reload_wanted = 0;

// The daemon: ends well after one reload, and by itself if nobody asks for it.
int run_daemon() {
  std::signal(SIGHUP, [](int) { reload_wanted = 1; });  // critical
  for (int tick = 0; tick < 2'000 && !reload_wanted; ++tick) ::usleep(5'000);
  return reload_wanted ? EXIT_SUCCESS : EXIT_FAILURE;
}

class Daemon {
 public:
  Daemon() : pid_(::fork()) {
    if (pid_ == 0) ::_exit(run_daemon());
  }

  void reload() const { ::kill(pid_, SIGHUP); }  // barrier

  int wait() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return status;
  }

 private:
  pid_t pid_;
};

}  // namespace

int main() {
  const Daemon daemon;
  std::this_thread::sleep_for(milliseconds(50));
  daemon.reload();
  const int status = daemon.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return EXIT_SUCCESS;
  std::fprintf(stderr, "the daemon ended with status %d\n", status);
  return EXIT_FAILURE;
}
