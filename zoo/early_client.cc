// The server's address is known before it listens there.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using std::chrono::milliseconds;

class Socket {
 public:
  Socket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

sockaddr_in local_address(in_port_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = port;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Greets whoever comes.
class Greeter {
 public:
  Greeter() {
    sockaddr_in address = local_address(0);
    socklen_t size = sizeof address;
    const auto raw = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_.fd(), raw, size) != 0 || ::getsockname(socket_.fd(), raw, &size) != 0)
      throw std::runtime_error("no port");
    port_ = address.sin_port;
    thread_ = std::thread([this] { serve(); });
  }
  ~Greeter() {
    closing_ = true;
    thread_.join();
  }

  in_port_t port() const { return port_; }

 private:
  void serve() {
    ::listen(socket_.fd(), 1);  // critical
    pollfd door{.fd = socket_.fd(), .events = POLLIN, .revents = 0};
    while (!closing_) {
      if (::poll(&door, 1, 10) <= 0) continue;
      const Socket guest(::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      ::send(guest.fd(), "hello", 5, MSG_NOSIGNAL);
    }
  }

  Socket socket_;
  in_port_t port_ = 0;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

std::string greeting_from(in_port_t port) {
  const Socket socket;
  const sockaddr_in address = local_address(port);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address),  // barrier
                sizeof address) != 0)
    return "refused";
  std::string text(5, '\0');
  return ::recv(socket.fd(), text.data(), text.size(), MSG_WAITALL) == 5 ? text : "cut off";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_guest_is_greeted) {
  const Greeter greeter;
  std::this_thread::sleep_for(milliseconds(30));
  BOOST_TEST(greeting_from(greeter.port()) == "hello");  // fails here
}
