// Three guests at a round table, and everybody takes the left fork first.
#include <array>
#include <cassert>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr int seats = 3;

class Table {
 public:
  void eat_at(int seat) {
    std::lock_guard left(forks_[seat]);                 // barrier
    std::lock_guard right(forks_[(seat + 1) % seats]);  // critical
    ++meals_[seat];
  }

  int meals(int seat) const { return meals_[seat]; }

 private:
  std::array<std::mutex, seats> forks_;
  std::array<int, seats> meals_{};
};

}  // namespace

int main() {
  Table table;
  std::vector<std::thread> guests;
  for (int seat = 0; seat < seats; ++seat) guests.emplace_back([&, seat] { table.eat_at(seat); });
  for (std::thread& guest : guests) guest.join();
  for (int seat = 0; seat < seats; ++seat) assert(table.meals(seat) == 1);
}
