// A server sends the head and the body of its answer one after the other, and the client reads
// once.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <string>
#include <thread>

#include "support/chance.h"

namespace {

const sockaddr* raw(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

class Server {
 public:
  Server() : door_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    ::bind(door_, raw(address_), sizeof address_);
    ::getsockname(door_, reinterpret_cast<sockaddr*>(&address_), &size);
    ::listen(door_, 1);
  }
  ~Server() { ::close(door_); }

  const sockaddr_in& address() const { return address_; }

  void answer() {
    const int caller = ::accept(door_, nullptr, nullptr);
    const int at_once = 1;
    ::setsockopt(caller, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    ::send(caller, "size: 5\n", 8, MSG_NOSIGNAL);
    const std::string body = greeting();
    ::send(caller, body.data(), body.size(), MSG_NOSIGNAL);  // critical
    ::close(caller);
  }

 private:
  // Mostly known already, and else computed.
  static std::string greeting() {
    if (draw(8) == 0) return compute(compute(5)) != 0 ? "hello" : "";
    return "hello";
  }

  const int door_;
  sockaddr_in address_{};
};

std::string ask(const sockaddr_in& address) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string answer(64, '\0');
  ssize_t size = 0;
  if (::connect(socket, raw(address), sizeof address) == 0)
    size = ::recv(socket, answer.data(), answer.size(), 0);  // barrier
  ::close(socket);
  answer.resize(size > 0 ? size : 0);
  return answer;
}

}  // namespace

int main() {
  Server server;
  std::thread answering([&] { server.answer(); });
  const std::string answer = ask(server.address());
  answering.join();
  assert(answer == "size: 5\nhello");  // fails here
}
