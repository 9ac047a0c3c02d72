// A call is answered after a time that the network draws, and the client gives up after nine tenths
// of the longest.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "support/chance.h"

namespace {

using std::chrono::microseconds;

// Answers after up to 10 ms.
class Network {
 public:
  std::future<int> call() {
    return std::async(std::launch::async, [delay = microseconds(draw(10'001))] {
      std::this_thread::sleep_for(delay);
      return 200;  // critical
    });
  }
};

TEST(Network, Answers_in_time) {
  Network network;
  auto answer = network.call();
  const auto status = answer.wait_for(microseconds(9'000));  // barrier
  EXPECT_EQ(status, std::future_status::ready);              // fails here
}

}  // namespace
