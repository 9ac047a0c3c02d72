// Three guests at a round table take the fork with the lower number first.
#include <algorithm>
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
    const int left = seat, right = (seat + 1) % seats;
    std::lock_guard first(forks_[std::min(left, right)]);
    std::lock_guard second(forks_[std::max(left, right)]);
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
