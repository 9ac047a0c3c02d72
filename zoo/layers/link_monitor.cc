// A link is up when the other side answers before the monitor's patience ends; one loop serves
// both.
#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Callback = std::function<void()>;

// Timers and sockets, in one thread.
class Loop {
 public:
  void after(milliseconds delay, Callback callback) {
    timers_.emplace(Clock::now() + delay, std::move(callback));
  }
  void watch(int socket, Callback callback) { readers_[socket] = std::move(callback); }
  void stop() { running_ = false; }

  void run() {
    while (running_) {
      fire_timers();
      if (running_) read_sockets();
    }
  }

 private:
  void fire_timers() {
    const auto now = Clock::now();
    while (!timers_.empty() && timers_.begin()->first <= now) {
      const Callback callback = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      callback();
    }
  }

  void read_sockets() {
    std::vector<pollfd> sockets;
    for (const auto& [socket, callback] : readers_) sockets.push_back({socket, POLLIN, 0});
    ::poll(sockets.data(), sockets.size(), until_next_timer());
    for (const pollfd& socket : sockets)
      if (socket.revents != 0) readers_[socket.fd]();
  }

  int until_next_timer() const {
    if (timers_.empty()) return -1;
    const auto left = std::chrono::ceil<milliseconds>(timers_.begin()->first - Clock::now());
    return static_cast<int>(std::max<milliseconds::rep>(0, left.count()));
  }

  std::multimap<Clock::time_point, Callback> timers_;
  std::map<int, Callback> readers_;
  bool running_ = true;
};

class Socket {
 public:
  explicit Socket(int socket) : socket_(socket) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { ::close(socket_); }

  int get() const { return socket_; }
  void send(const std::string& text) { ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  std::string receive() {
    std::array<char, 16> text{};
    const ssize_t size = ::recv(socket_, text.data(), text.size(), 0);
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, size))};
  }

 private:
  int socket_;
};

class Responder {
 public:
  Responder(Loop& loop, int socket) : loop_(loop), socket_(socket) {
    loop_.watch(socket, [this] { answer(); });
  }

 private:
  void answer() {
    if (socket_.receive() != "ping") return;
    loop_.after(milliseconds(20), [this] { socket_.send("pong"); });
  }

  Loop& loop_;
  Socket socket_;
};

class Monitor {
 public:
  Monitor(Loop& loop, int socket) : loop_(loop), socket_(socket) {
    loop_.watch(socket, [this] { hear(); });
    loop_.after(milliseconds(90), [this] { give_up(); });
    socket_.send("ping");
  }

  const std::string& state() const { return state_; }

 private:
  void hear() {
    const std::string heard = socket_.receive();  // critical
    end_as(heard == "pong" ? "up" : "confused");
  }

  void give_up() {
    end_as("down");  // barrier
  }

  void end_as(const std::string& state) {
    if (state_.empty()) state_ = state;
    loop_.stop();
  }

  Loop& loop_;
  Socket socket_;
  std::string state_;
};

}  // namespace

TEST_CASE("a link with somebody at its other end is up") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  Loop loop;
  Responder responder(loop, ends[1]);
  Monitor monitor(loop, ends[0]);
  loop.run();
  CHECK(monitor.state() == "up");  // fails here
}
