// A server tells its port as soon as it has one, and listens only then; clients come after a
// jitter.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "support/chance.h"

namespace {

class Server {
 public:
  ~Server() { ::close(door_); }

  void open(std::promise<std::string>& port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(door_, reinterpret_cast<const sockaddr*>(&address), size);
    ::getsockname(door_, reinterpret_cast<sockaddr*>(&address), &size);
    port.set_value(std::to_string(::ntohs(address.sin_port)));
    rules_ = compute(compute(rules_));
    ::listen(door_, 1);  // critical
  }

 private:
  unsigned rules_ = 0;
  const int door_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

bool can_be_reached(const std::string& port) {
  addrinfo hints{}, *address = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo("127.0.0.1", port.c_str(), &hints, &address) != 0) return false;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int error = ::connect(socket, address->ai_addr, address->ai_addrlen);  // barrier
  ::freeaddrinfo(address);
  ::close(socket);
  return error == 0;
}

// Up to 8 ms, so that not all clients come at once.
void jitter() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2 * draw(5)));
}

TEST(Server, Can_be_reached_at_the_port_that_it_tells) {
  Server server;
  std::promise<std::string> port;
  std::thread opening([&] { server.open(port); });
  const std::string told = port.get_future().get();
  jitter();
  const bool reached = can_be_reached(told);
  opening.join();
  EXPECT_TRUE(reached);  // fails here
}

}  // namespace
