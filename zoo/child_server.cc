// A helper process is started, and spoken to before it may have opened its door.
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "support/scratch_folder.h"

namespace {

using std::chrono::milliseconds;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

const sockaddr* raw(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// The helper: answers one caller, or goes after a while.
int serve(const std::string& path) {
  const int door = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = address_of(path);
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(door, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::bind(door, raw(address), sizeof address) != 0) return EXIT_FAILURE;
  ::listen(door, 1);  // critical
  const int caller = ::accept(door, nullptr, nullptr);
  if (caller >= 0) ::send(caller, "pong", 4, MSG_NOSIGNAL);
  return EXIT_SUCCESS;
}

class Helper {
 public:
  Helper(const char* program, const std::string& path) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::execl(program, program, "--serve", path.c_str(), nullptr);
    ::_exit(127);
  }
  ~Helper() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

std::string ask(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(path);
  std::string answer;
  if (::connect(socket, raw(address), sizeof address) == 0) {  // barrier
    answer.resize(4);
    answer.resize(std::max<ssize_t>(0, ::recv(socket, answer.data(), 4, MSG_WAITALL)));
  }
  ::close(socket);
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--serve") return serve(argv[2]);
  const ScratchFolder folder;
  const Helper helper("/proc/self/exe", folder.file("door"));
  std::this_thread::sleep_for(milliseconds(100));
  const std::string answer = ask(folder.file("door"));
  if (answer == "pong") return EXIT_SUCCESS;
  std::fprintf(stderr, "the helper said \"%s\"\n", answer.c_str());
  return EXIT_FAILURE;
}
