// Two couriers, of whom one is usually faster, and a test that takes it for a rule.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class Reception {
 public:
  void sign_for(std::string parcel) {
    std::lock_guard lock(mutex_);
    parcels_.push_back(std::move(parcel));
  }
  const std::vector<std::string>& parcels() const { return parcels_; }

 private:
  std::mutex mutex_;
  std::vector<std::string> parcels_;
};

// Traffic makes 1 to 31 ms of it.
void ride_through_town(Reception& reception) {
  std::random_device dice;
  std::this_thread::sleep_for(milliseconds(1) + microseconds(dice() % 30'000));
  reception.sign_for("express");  // critical
}

void walk(Reception& reception) {
  std::this_thread::sleep_for(milliseconds(18));
  reception.sign_for("letter");  // barrier
}

}  // namespace

BOOST_AUTO_TEST_CASE(express_is_first) {
  Reception reception;
  std::thread bicycle([&] { ride_through_town(reception); });
  std::thread feet([&] { walk(reception); });
  bicycle.join();
  feet.join();
  BOOST_TEST(reception.parcels().front() == "express");  // fails here
}
