// Each account has its lock, and an audit locks one after the other while money is on its way from
// the second to the first.
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

namespace {

class Account {
 public:
  explicit Account(int balance) : balance_(balance) {}

  void add(int amount) {
    std::lock_guard lock(mutex_);
    balance_ += amount;
  }

  int balance() const {
    std::lock_guard lock(mutex_);
    return balance_;
  }

 private:
  mutable std::mutex mutex_;
  int balance_;
};

}  // namespace

TEST_CASE("a transfer does not change the total") {
  Account savings(70), checking(30);
  int total = 0;
  std::thread transfer([&] {
    checking.add(-20);  // step
    savings.add(20);    // critical
  });
  std::thread audit([&] {
    total = savings.balance();    // barrier
    total += checking.balance();  // step
  });
  transfer.join();
  audit.join();
  CHECK(total == 100);  // fails here
}
