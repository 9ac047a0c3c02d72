// A connection that is not up at the first glance gets one more, and no other.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace {

using std::chrono::milliseconds;

class Connection {
 public:
  explicit Connection(std::string host)
      : host_(std::move(host)), handshake_([this] { shake_hands(); }) {}
  ~Connection() { handshake_.join(); }

  bool is_up() const { return up_; }  // barrier

 private:
  void shake_hands() {
    for (int step = 0; step < 3; ++step) std::this_thread::sleep_for(milliseconds(1));
    up_ = true;  // critical
  }

  std::string host_;
  std::atomic<bool> up_{false};
  std::thread handshake_;
};

}  // namespace

TEST_CASE("a connection comes up") {
  const Connection connection("db.example.org");
  if (!connection.is_up()) std::this_thread::sleep_for(milliseconds(50));
  CHECK(connection.is_up());  // fails here
}
