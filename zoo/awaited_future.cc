// A result that is asked for, and waited for without an end.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

std::future<int> checksum_of(std::vector<int> bytes) {
  return std::async(std::launch::async, [bytes = std::move(bytes)] {
    std::this_thread::sleep_for(milliseconds(3));  // the disk
    return std::accumulate(bytes.begin(), bytes.end(), 0) % 256;
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_checksum_is_computed) {
  std::future<int> first = checksum_of({200, 100, 1});
  std::future<int> second = checksum_of({7});
  BOOST_TEST(second.get() == 7);
  BOOST_TEST(first.get() == 45);
}
