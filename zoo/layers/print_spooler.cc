// Documents are printed by a pool of printers, which tell when they have finished one.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/pool.h"
#include "support/sync.h"

namespace {

class Spooler {
 public:
  using Callback = std::function<void()>;

  explicit Spooler(int printers) : pool_("printer", printers) {}

  void print(int pages, Callback printed) {
    pool_.submit([pages] { base::sleep_for(pages * time_per_page); }, std::move(printed));
  }

  void wait() { pool_.wait_until_idle(); }

 private:
  static constexpr base::Milliseconds time_per_page{6};
  base::Pool pool_;
};

class Tray {
 public:
  void add(const std::string& document) {
    const base::Lock lock(mutex_);
    documents_.push_back(document);
  }

  std::vector<std::string> documents() const {
    const base::Lock lock(mutex_);
    return documents_;
  }

 private:
  mutable base::Mutex mutex_;
  std::vector<std::string> documents_;
};

}  // namespace

TEST_CASE("the cover sheet lies below the report") {
  Tray tray;
  Spooler spooler(3);
  spooler.print(1, [&] {
    tray.add("cover");  // critical
  });
  spooler.print(9, [&] {
    tray.add("report");  // barrier
  });
  spooler.wait();
  CHECK(tray.documents() == std::vector<std::string>{"cover", "report"});  // fails here
}

TEST_CASE("an idle spooler has nothing to wait for") {
  Spooler spooler(2);
  spooler.wait();
  SUCCEED();
}
