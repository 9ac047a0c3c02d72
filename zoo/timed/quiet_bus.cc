// That nothing happens can only be waited for. It passes however short the wait is, and then proves
// less.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>

namespace {

using std::chrono::milliseconds;

class Bus {
 public:
  std::future<int> next_message() { return message_.get_future(); }
  void post(int topic, int content) {
    if (topic == 1) message_.set_value(content);
  }

 private:
  std::promise<int> message_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(other_topics_are_not_delivered) {
  Bus bus;
  const std::future<int> message = bus.next_message();
  bus.post(2, 99);
  const auto status = message.wait_for(milliseconds(150));  // value
  BOOST_TEST((status == std::future_status::timeout));
}
