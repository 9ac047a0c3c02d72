// A log that writes its lines regularly, and not each at once.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/scheduler.h"

namespace {

using Lines = std::vector<std::string>;

class MemorySink {
 public:
  void append(Lines lines) {
    const base::Lock lock(mutex_);
    for (std::string& line : lines) lines_.push_back(std::move(line));
  }

  Lines lines() const {
    const base::Lock lock(mutex_);
    return lines_;
  }

 private:
  mutable base::Mutex mutex_;
  Lines lines_;
};

class AuditLog {
 public:
  AuditLog(MemorySink& sink, base::Milliseconds period) : sink_(sink) {
    writer_.every(period, [this] { flush(); });
  }

  void note(std::string line) {
    const base::Lock lock(mutex_);
    waiting_.push_back(std::move(line));
  }

 private:
  void flush() {
    Lines lines = take();
    if (!lines.empty()) sink_.append(std::move(lines));  // critical
  }

  Lines take() {
    const base::Lock lock(mutex_);
    return std::exchange(waiting_, {});
  }

  MemorySink& sink_;
  base::Mutex mutex_;
  Lines waiting_;
  base::Scheduler writer_{"audit writer"};
};

TEST(AuditLog, Writes_after_its_period) {
  MemorySink sink;
  AuditLog log(sink, base::Milliseconds(50));
  log.note("alice logged in");
  log.note("alice read invoice 7");
  base::sleep_for(base::Milliseconds(110));
  EXPECT_EQ(sink.lines().size(), 2u);  // barrier, fails here
}

}  // namespace
