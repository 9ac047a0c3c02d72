// Two transfers in opposite directions lock the same two accounts, each its own first.
#include <cassert>
#include <chrono>
#include <mutex>
#include <thread>

namespace {

using std::chrono::milliseconds;

class Account {
 public:
  explicit Account(int balance) : balance_(balance) {}

  void transfer_to(Account& other, int amount) {
    std::lock_guard own(mutex_);           // barrier
    std::lock_guard theirs(other.mutex_);  // critical
    balance_ -= amount;
    other.balance_ += amount;
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

int main() {
  Account savings(100);
  Account checking(20);
  std::thread standing_order([&] { savings.transfer_to(checking, 30); });
  std::thread card([&] {
    std::this_thread::sleep_for(milliseconds(30));  // the customer signs
    checking.transfer_to(savings, 10);
  });
  standing_order.join();
  card.join();
  assert(savings.balance() == 80);
  assert(checking.balance() == 40);
}
