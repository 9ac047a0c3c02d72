// A log that writes its lines regularly, and at once when it is asked to.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/scheduler.h"

namespace {

using Lines = std::vector<std::string>;

class ReceiptLog {
 public:
  explicit ReceiptLog(base::Milliseconds period) {
    writer_.every(period, [this] { write(); });
  }

  void note(std::string line) {
    const base::Lock lock(mutex_);
    waiting_.push_back(std::move(line));
  }

  // Returns when everything that was noted so far has been written.
  void flush() {
    writer_.post([this] { write(); });
    writer_.drain();
  }

  Lines written() const {
    const base::Lock lock(mutex_);
    return written_;
  }

 private:
  void write() {
    const base::Lock lock(mutex_);
    for (std::string& line : std::exchange(waiting_, {})) written_.push_back(std::move(line));
  }

  mutable base::Mutex mutex_;
  Lines waiting_, written_;
  base::Scheduler writer_{"receipt writer"};
};

TEST(ReceiptLog, Has_written_everything_after_a_flush) {
  ReceiptLog log(base::Milliseconds(50));
  log.note("2 apples");
  base::sleep_for(base::Milliseconds(60));
  log.note("1 pear");
  log.flush();
  EXPECT_EQ(log.written(), (Lines{"2 apples", "1 pear"}));
}

}  // namespace
