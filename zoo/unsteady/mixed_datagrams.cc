// Two senders with a socket each write to one receiver, and datagrams are expected as the senders
// were started.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "support/chance.h"

namespace {

class Receiver {
 public:
  Receiver() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    ::bind(socket_, reinterpret_cast<const sockaddr*>(&address_), size);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &size);
  }
  ~Receiver() { ::close(socket_); }

  const sockaddr_in& address() const { return address_; }

  char next() {
    char letter = '?';
    ::recv(socket_, &letter, 1, 0);
    return letter;
  }

 private:
  const int socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address_{};
};

void send_letters(const sockaddr_in& to, const std::string& letters) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  for (const char letter : letters) ::send(socket, &letter, 1, 0);  // critical, barrier
  ::close(socket);
}

}  // namespace

TEST_CASE("the first sender's letters come first") {
  Receiver receiver;
  std::thread first([&] { send_letters(receiver.address(), "aaaa"); });
  std::thread second([&] {
    if (draw(3) != 0) ::usleep(3'000);  // its name is not in the cache, and is asked for
    send_letters(receiver.address(), "bbbb");
  });
  std::string letters;
  while (letters.size() < 8) letters += receiver.next();
  first.join();
  second.join();
  CHECK(letters == "aaaabbbb");  // fails here
}
