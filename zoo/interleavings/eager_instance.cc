// The one catalogue is made at first use, behind a doubly checked lock, and shown to others before
// it is filled.
#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

namespace {

class Catalogue {
 public:
  static Catalogue& instance() {
    if (Catalogue* made = instance_.load()) return *made;  // step
    std::lock_guard lock(making_);
    if (instance_.load() == nullptr) {
      static Catalogue only;
      instance_.store(&only);  // step
      only.fill();
    }
    return *instance_.load();
  }

  int size() const { return size_; }  // barrier

 private:
  void fill() { size_ = 3; }  // critical

  static inline std::atomic<Catalogue*> instance_{nullptr};
  static inline std::mutex making_;
  int size_ = 0;
};

}  // namespace

TEST_CASE("both see the whole catalogue") {
  int seen_by_one = 0, seen_by_other = 0;
  std::thread one([&] { seen_by_one = Catalogue::instance().size(); });
  std::thread other([&] { seen_by_other = Catalogue::instance().size(); });
  one.join();
  other.join();
  CHECK(seen_by_one + seen_by_other == 6);  // fails here
}
