// A result that is ready in 40 ms at the latest is asked for after 30.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

std::future<int> square_of(int number) {
  return std::async(std::launch::async, [number] {
    device_takes(some_time(milliseconds(20), milliseconds(40)));
    return number * number;
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_square_is_there_in_time) {
  std::future<int> square = square_of(12);
  const auto status = square.wait_for(milliseconds(30));  // value
  BOOST_TEST((status == std::future_status::ready));
  BOOST_TEST(square.get() == 144);
}
