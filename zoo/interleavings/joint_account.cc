// Reading the balance is locked, and so is writing it; what is between the two is not.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace {

class Account {
 public:
  explicit Account(int balance) : balance_(balance) {}

  void deposit(int amount) { change(amount); }
  void withdraw(int amount) { change(-amount); }

  int balance() const {
    std::lock_guard lock(mutex_);
    return balance_;
  }

 private:
  void change(int amount) {
    const int before = balance();  // barrier
    set_balance(before + amount);  // critical
  }

  void set_balance(int balance) {
    std::lock_guard lock(mutex_);
    balance_ = balance;
  }

  mutable std::mutex mutex_;
  int balance_;
};

TEST(Account, Belongs_to_two) {
  Account account(100);
  std::thread wife([&] { account.deposit(50); });
  std::thread husband([&] { account.withdraw(30); });
  wife.join();
  husband.join();
  EXPECT_EQ(account.balance(), 120);  // fails here
}

}  // namespace
