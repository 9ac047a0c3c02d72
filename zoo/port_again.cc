// A restarted service wants its old port, which the old one gives back in its own time.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <chrono>
#include <thread>

namespace {

using std::chrono::milliseconds;

class Service {
 public:
  // Port 0 lets the system choose.
  explicit Service(in_port_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const auto raw = reinterpret_cast<sockaddr*>(&address);
    running_ = ::bind(socket_, raw, size) == 0 && ::listen(socket_, 4) == 0;  // barrier
    ::getsockname(socket_, raw, &size);
    port_ = address.sin_port;
    thread_ = std::thread([this] { serve(); });
  }
  ~Service() {
    stop();
    thread_.join();
  }

  void stop() { stopping_ = true; }
  bool running() const { return running_; }
  in_port_t port() const { return port_; }

 private:
  void serve() {
    do {
      std::this_thread::sleep_for(milliseconds(5));
    } while (!stopping_);
    ::close(socket_);  // critical
  }

  int socket_;
  in_port_t port_ = 0;
  bool running_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

int main() {
  Service old_one(0);
  assert(old_one.running());
  old_one.stop();
  std::this_thread::sleep_for(milliseconds(50));
  const Service new_one(old_one.port());
  assert(new_one.running());  // fails here
}
