// News are published when the reader ought to have subscribed by now.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;

class MessageBus {
 public:
  using Handler = std::function<void(const std::string&)>;

  void subscribe(const std::string& topic, Handler handler) {
    std::lock_guard lock(mutex_);
    handlers_[topic].push_back(std::move(handler));  // critical
  }

  void publish(const std::string& topic, const std::string& message) {
    std::lock_guard lock(mutex_);
    for (const Handler& handler : handlers_[topic]) handler(message);  // barrier
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<Handler>> handlers_;
};

class Reader {
 public:
  explicit Reader(MessageBus& bus)
      : starter_([this, &bus] {
          bus.subscribe("news", [this](const std::string& message) { last_ = message; });
        }) {}
  ~Reader() { stop(); }

  void stop() {
    if (starter_.joinable()) starter_.join();
  }
  const std::string& last() const { return last_; }

 private:
  std::string last_;
  std::thread starter_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(news_reach_the_reader) {
  MessageBus bus;
  Reader reader(bus);
  std::this_thread::sleep_for(milliseconds(30));
  bus.publish("news", "rain");
  reader.stop();
  BOOST_TEST(reader.last() == "rain");  // fails here
}
