// Deliveries lock one mutex and sales another, and both change the same stock.
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

namespace {

class Warehouse {
 public:
  void deliver(int boxes) {
    std::lock_guard lock(deliveries_);
    const int before = stock_;
    stock_ = before + boxes;  // critical
  }

  void sell(int boxes) {
    std::lock_guard lock(sales_);
    const int before = stock_;
    stock_ = before - boxes;  // barrier
  }

  int stock() const { return stock_; }

 private:
  std::mutex deliveries_, sales_;
  int stock_ = 10;
};

}  // namespace

TEST_CASE("the stock is what came minus what went") {
  Warehouse warehouse;
  std::thread lorry([&] { warehouse.deliver(5); });
  std::thread shop([&] { warehouse.sell(3); });
  lorry.join();
  shop.join();
  CHECK(warehouse.stock() == 12);  // fails here
}
