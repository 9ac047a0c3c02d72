// Six slow jobs side by side must take less time than one after the other.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class JobRunner {
 public:
  static void run(const std::vector<std::function<void()>>& jobs) {
    std::vector<std::thread> threads;
    for (const auto& job : jobs) threads.emplace_back(job);
    for (std::thread& thread : threads) thread.join();
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(slow_jobs_run_side_by_side) {
  constexpr int times = 6;
  constexpr milliseconds delay(25);
  const std::vector<std::function<void()>> jobs(times, [&] { std::this_thread::sleep_for(delay); });
  const auto start = steady_clock::now();
  JobRunner::run(jobs);
  const auto took = steady_clock::now() - start;
  BOOST_TEST((took < delay * times));  // fails here
}
