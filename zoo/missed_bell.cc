// The end of a job is announced once; a test that is not waiting yet never hears of it.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace {

using std::chrono::milliseconds;

class Backup {
 public:
  Backup() : thread_([this] { copy(); }) {}
  ~Backup() { thread_.join(); }

  bool wait_until_finished() {
    std::unique_lock lock(mutex_);
    return finished_.wait_for(lock, milliseconds(150)) == std::cv_status::no_timeout;  // critical
  }

 private:
  void copy() {
    std::this_thread::sleep_for(milliseconds(40));
    std::lock_guard lock(mutex_);
    finished_.notify_all();  // barrier
  }

  std::mutex mutex_;
  std::condition_variable finished_;
  std::thread thread_;
};

std::string summary_of(int files) {
  return std::to_string(files) + (files == 1 ? " file" : " files");
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_backup_finishes) {
  Backup backup;
  BOOST_TEST(summary_of(1) == "1 file");
  BOOST_TEST(backup.wait_until_finished());  // fails here
}
