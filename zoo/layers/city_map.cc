// A map is drawn by a thread for each tile, and its legend by one more.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "support/sync.h"

namespace {

// Tiles that were fetched before need not be fetched again.
class TileCache {
 public:
  void put(int tile) {
    const base::Lock lock(mutex_);
    tiles_.insert(tile);
  }

  std::size_t size() const {
    const base::Lock lock(mutex_);
    return tiles_.size();
  }

 private:
  mutable base::Mutex mutex_;
  std::set<int> tiles_;
};

class CityMap {
 public:
  explicit CityMap(int tiles) : tiles_(tiles) {}

  void draw() {
    for (int tile = 0; tile < tiles_; ++tile)
      threads_.push_back(std::make_unique<base::Thread>("tile " + std::to_string(tile),
                                                        [this, tile] { draw_tile(tile); }));
    threads_.push_back(std::make_unique<base::Thread>("legend", [this] { draw_legend(); }));
  }

  void wait_for_tiles() { all_drawn_.wait(); }
  std::size_t cached() const { return cache_.size(); }

  std::string legend() const {
    const base::Lock lock(mutex_);
    return legend_;
  }

 private:
  void draw_tile(int tile) {
    std::vector<int> streets(100, tile);
    std::partial_sum(streets.begin(), streets.end(), streets.begin());
    cache_.put(tile);
    const base::Lock lock(mutex_);
    length_ += streets.back();
    if (++drawn_ == tiles_) all_drawn_.set();
  }

  void draw_legend() {
    const std::string text = "1 : " + std::to_string(tiles_ * 100);
    const base::Lock lock(mutex_);
    legend_ = text;  // critical
  }

  const int tiles_;
  TileCache cache_;
  mutable base::Mutex mutex_;
  int drawn_ = 0;
  long length_ = 0;
  std::string legend_;
  base::Event all_drawn_;
  std::vector<std::unique_ptr<base::Thread>> threads_;
};

TEST(CityMap, Is_drawn_with_its_legend) {
  CityMap map(59);
  map.draw();
  map.wait_for_tiles();
  EXPECT_EQ(map.cached(), 59u);
  base::sleep_for(base::Milliseconds(60));
  EXPECT_EQ(map.legend(), "1 : 5900");  // barrier, fails here
}

}  // namespace
