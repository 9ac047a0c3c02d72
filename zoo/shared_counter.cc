// A counter with a lock around it, and threads that are waited for.
#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

class VisitCounter {
 public:
  void visit(const std::string& page) {
    std::lock_guard lock(mutex_);
    ++visits_[page];
  }

  int visits(const std::string& page) const {
    std::lock_guard lock(mutex_);
    const auto found = visits_.find(page);
    return found == visits_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> visits_;
};

}  // namespace

TEST_CASE("every visit counts") {
  VisitCounter counter;
  std::vector<std::thread> visitors;
  for (int i = 0; i < 3; ++i) {
    visitors.emplace_back([&] {
      for (int visit = 0; visit < 5; ++visit) counter.visit("/index.html");
    });
  }
  for (std::thread& visitor : visitors) visitor.join();
  CHECK(counter.visits("/index.html") == 15);
}
