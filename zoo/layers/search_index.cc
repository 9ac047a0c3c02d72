// An index is built anew from time to time; searches do not wait for that for long.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "support/scheduler.h"

namespace {

class SearchIndex {
 public:
  SearchIndex() {
    builder_.every(base::Milliseconds(12), [this] { rebuild(); });
  }

  std::optional<int> find(const std::string& word) {
    if (!mutex_.try_lock_for(base::Milliseconds(120))) return std::nullopt;
    const auto found = pages_.find(word);
    const int page = found == pages_.end() ? 0 : found->second;
    mutex_.unlock();
    return page;
  }

 private:
  void rebuild() {
    mutex_.lock();
    pages_ = {{"apple", 3}, {"pear", 14}};
    base::sleep_for(base::Milliseconds(2));  // the disk
    mutex_.unlock();                         // critical
  }

  base::Mutex mutex_;
  std::map<std::string, int> pages_{{"pear", 13}};
  base::Scheduler builder_{"index builder"};
};

TEST(SearchIndex, Finds_words_while_it_is_rebuilt) {
  SearchIndex index;
  for (int search = 0; search < 6; ++search) {
    base::sleep_for(base::Milliseconds(10));
    const std::optional<int> page = index.find("pear");  // barrier
    ASSERT_TRUE(page.has_value());                       // fails here
    EXPECT_GE(*page, 13);
  }
}

}  // namespace
