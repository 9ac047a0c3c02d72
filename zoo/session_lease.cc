// A session is renewed long before it expires, and used long before, too. Both must be late to
// fail.
#include <atomic>
#include <cassert>
#include <chrono>
#include <thread>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class Session {
 public:
  void renew() { expires_ = steady_clock::now() + lifetime; }  // critical

  bool valid() const {
    const auto now = steady_clock::now();
    return now < expires_.load();
  }

 private:
  static constexpr milliseconds lifetime{120};
  std::atomic<steady_clock::time_point> expires_{steady_clock::now() + lifetime};
};

class Renewer {
 public:
  explicit Renewer(Session& session) : thread_([this, &session] { keep_alive(session); }) {}
  ~Renewer() {
    stopping_ = true;
    thread_.join();
  }

 private:
  void keep_alive(Session& session) {
    while (!stopping_) {
      std::this_thread::sleep_for(milliseconds(40));
      session.renew();
    }
  }

  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

int main() {
  Session session;
  const Renewer renewer(session);
  std::this_thread::sleep_for(milliseconds(60));  // a user reads the page
  const bool valid = session.valid();             // barrier
  assert(valid);                                  // fails here
}
