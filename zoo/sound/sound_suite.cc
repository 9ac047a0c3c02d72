// Sound tests, many of each kind: they use threads, waits, clocks, files and processes as the flaky
// programs do, and no lateness, order or surroundings make them fail. The number of a test decides
// how many threads, items and pauses it has. README.md of the zoo tells more.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <semaphore>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using namespace std::chrono_literals;

// The number of a test, and what follows from it.
class Numbered : public testing::TestWithParam<int> {
 protected:
  int number() const { return GetParam(); }
  int threads() const { return 1 + number() % 4; }
  int items() const { return 3 + 2 * number(); }
  std::chrono::milliseconds pause() const { return std::chrono::milliseconds(number() % 5); }
  int sum() const { return items() * (items() - 1) / 2; }

  void in_threads(const std::function<void(int)>& work) const {
    std::vector<std::thread> all;
    for (int i = 0; i < threads(); ++i) all.emplace_back(work, i);
    for (std::thread& one : all) one.join();
  }
};

template <typename T>
class Queue {
 public:
  void push(T item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    changed_.notify_one();
  }
  T pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !items_.empty(); });
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
};

class QueueOfNumbers : public Numbered {};
TEST_P(QueueOfNumbers, Hands_over_every_number) {
  Queue<int> queue;
  std::thread producer([&] {
    for (int i = 0; i < items(); ++i) queue.push(i);
  });
  int received = 0;
  for (int i = 0; i < items(); ++i) received += queue.pop();
  producer.join();
  EXPECT_EQ(received, sum());
}

class QueueOfReplies : public Numbered {};
TEST_P(QueueOfReplies, Answers_each_question_once) {
  Queue<int> questions, answers;
  std::thread server([&] {
    for (int question; (question = questions.pop()) >= 0;) {
      std::this_thread::sleep_for(pause() / 4);
      answers.push(2 * question);
    }
  });
  for (int i = 1; i <= threads(); ++i) {
    questions.push(i);
    EXPECT_EQ(answers.pop(), 2 * i);
  }
  questions.push(-1);
  server.join();
}

class Futures : public Numbered {};
TEST_P(Futures, Add_up) {
  std::vector<std::future<int>> parts;
  for (int i = 0; i < threads(); ++i)
    parts.push_back(std::async(std::launch::async, [this, i] {
      std::this_thread::sleep_for(pause());
      return i * number();
    }));
  int total = 0;
  for (auto& part : parts) total += part.get();
  EXPECT_EQ(total, number() * threads() * (threads() - 1) / 2);
}

class Counter : public Numbered {};
TEST_P(Counter, Counts_under_its_lock) {
  std::mutex mutex;
  int count = 0;
  in_threads([&](int) {
    for (int i = 0; i < items(); ++i) {
      const std::lock_guard lock(mutex);
      ++count;
    }
  });
  EXPECT_EQ(count, threads() * items());
}

class AtomicCounter : public Numbered {};
TEST_P(AtomicCounter, Counts_without_a_lock) {
  std::atomic<int> count{0};
  in_threads([&](int) {
    for (int i = 0; i < items(); ++i) count.fetch_add(1, std::memory_order_relaxed);
  });
  EXPECT_EQ(count.load(), threads() * items());
}

class Pipes : public Numbered {};
TEST_P(Pipes, Carry_every_byte) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    for (int i = 0; i < items(); ++i) {
      const char byte = static_cast<char>('a' + i % 26);
      while (write(ends[1], &byte, 1) != 1) {
      }
    }
    close(ends[1]);
  });
  std::string received;
  char some[7];
  for (ssize_t length; (length = read(ends[0], some, sizeof some)) > 0;)
    received.append(some, static_cast<size_t>(length));
  writer.join();
  close(ends[0]);
  EXPECT_EQ(received.size(), static_cast<size_t>(items()));
}

class Sockets : public Numbered {};
TEST_P(Sockets, Echo_what_was_sent) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  std::thread echo([&] {
    char some[16];
    for (ssize_t length; (length = recv(ends[1], some, sizeof some, 0)) > 0;)
      send(ends[1], some, static_cast<size_t>(length), MSG_NOSIGNAL);
  });
  const std::string sent(static_cast<size_t>(items()), 'x');
  send(ends[0], sent.data(), sent.size(), MSG_NOSIGNAL);
  std::string received;
  char some[16];
  while (received.size() < sent.size()) {
    const ssize_t length = recv(ends[0], some, sizeof some, 0);
    if (length <= 0) break;
    received.append(some, static_cast<size_t>(length));
  }
  shutdown(ends[0], SHUT_RDWR);
  echo.join();
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(received, sent);
}

class Children : public Numbered {};
TEST_P(Children, Are_waited_for) {
  const pid_t child = fork();
  if (child == 0) {
    usleep(static_cast<useconds_t>(1000 * pause().count()));
    _exit(number() % 100);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), number() % 100);
}

class Files : public Numbered {};
TEST_P(Files, Are_replaced_as_a_whole) {
  std::string folder = testing::TempDir() + "/sound_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string draft = folder + "/draft", file = folder + "/file";
  for (int i = 0; i < items(); ++i) {
    std::ofstream(draft) << i << ' ' << i * i;
    ASSERT_EQ(rename(draft.c_str(), file.c_str()), 0);
  }
  int last = 0, square = 0;
  std::ifstream(file) >> last >> square;
  EXPECT_EQ(last, items() - 1);
  EXPECT_EQ(square, last * last);
  unlink(file.c_str());
  rmdir(folder.c_str());
}

class Rounds : public Numbered {};
TEST_P(Rounds, End_together) {
  std::barrier barrier(threads());
  std::vector<int> done(static_cast<size_t>(threads()));
  std::atomic<bool> are_together{true};
  in_threads([&](int thread) {
    for (int round = 1; round <= 3; ++round) {
      done[static_cast<size_t>(thread)] = round;
      barrier.arrive_and_wait();
      for (const int one : done)
        if (one != round) are_together = false;
      barrier.arrive_and_wait();
    }
  });
  EXPECT_TRUE(are_together);
}

class Semaphores : public Numbered {};
TEST_P(Semaphores, Take_turns) {
  std::binary_semaphore ping(0), pong(0);
  std::string turns;
  std::thread other([&] {
    for (int i = 0; i < threads(); ++i) {
      ping.acquire();
      turns += 'b';
      pong.release();
    }
  });
  std::string expected;
  for (int i = 0; i < threads(); ++i) {
    turns += 'a';
    ping.release();
    pong.acquire();
    expected += "ab";
  }
  other.join();
  EXPECT_EQ(turns, expected);
}

class Clocks : public Numbered {};
TEST_P(Clocks, Do_not_go_back) {
  auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < threads(); ++i) {
    std::this_thread::sleep_for(pause() / 2);
    const auto now = std::chrono::steady_clock::now();
    EXPECT_GE(now - before, pause() / 2);
    before = now;
  }
}

class Sleepers : public Numbered {};
TEST_P(Sleepers, Are_joined_before_anybody_looks) {
  std::string letter;
  std::thread writer([&] {
    std::this_thread::sleep_for(pause());
    letter = "dear reader";
  });
  std::this_thread::sleep_for(pause() / 2);
  writer.join();
  EXPECT_EQ(letter, "dear reader");
}

class Polling : public Numbered {};
TEST_P(Polling, Goes_on_until_it_is_done) {
  std::atomic<bool> is_done{false};
  std::thread worker([&] {
    std::this_thread::sleep_for(pause());
    is_done = true;
  });
  while (!is_done) std::this_thread::sleep_for(1ms);
  worker.join();
  EXPECT_TRUE(is_done);
}

class ShortWaits : public Numbered {};
TEST_P(ShortWaits, Are_made_again_until_it_is_ready) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_ready = false;
  std::thread worker([&] {
    std::this_thread::sleep_for(2 * pause());
    const std::lock_guard lock(mutex);
    is_ready = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  while (!is_ready) changed.wait_for(lock, 3ms);
  EXPECT_TRUE(is_ready);
  lock.unlock();
  worker.join();
}

class Settings : public Numbered {};
TEST_P(Settings, Are_read_once) {
  std::once_flag once;
  int reads = 0;
  in_threads([&](int) { std::call_once(once, [&] { ++reads; }); });
  EXPECT_EQ(reads, 1);
}

class Ledger : public Numbered {};
TEST_P(Ledger, Is_balanced_whenever_it_is_read) {
  std::shared_mutex mutex;
  int left = items(), right = 0;
  bool is_balanced = true;
  std::thread writer([&] {
    for (int i = 0; i < items(); ++i) {
      const std::unique_lock lock(mutex);
      --left;
      ++right;
    }
  });
  for (int i = 0; i < 5; ++i) {
    const std::shared_lock lock(mutex);
    is_balanced = is_balanced && left + right == items();
  }
  writer.join();
  EXPECT_TRUE(is_balanced);
}

class Timers : public Numbered {};
TEST_P(Timers, Fire_when_they_are_waited_for) {
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  itimerspec when{};
  when.it_value.tv_nsec = 1'000'000 * (1 + pause().count());
  ASSERT_EQ(timerfd_settime(timer, 0, &when, nullptr), 0);
  uint64_t times = 0;
  EXPECT_EQ(read(timer, &times, sizeof times), static_cast<ssize_t>(sizeof times));
  EXPECT_GE(times, 1u);
  close(timer);
}

class Wakeups : public Numbered {};
TEST_P(Wakeups, Are_not_lost) {
  const int bell = eventfd(0, 0);
  std::thread ringer([&] {
    for (int i = 0; i < threads(); ++i) eventfd_write(bell, 1);
  });
  eventfd_t rung = 0;
  while (rung < static_cast<eventfd_t>(threads())) {
    pollfd wanted{bell, POLLIN, 0};
    poll(&wanted, 1, -1);
    eventfd_t now = 0;
    eventfd_read(bell, &now);
    rung += now;
  }
  ringer.join();
  close(bell);
  EXPECT_EQ(rung, static_cast<eventfd_t>(threads()));
}

class Starts : public Numbered {};
TEST_P(Starts, Are_waited_for) {
  std::latch started(threads());
  std::atomic<int> running{0};
  std::vector<std::thread> all;
  for (int i = 0; i < threads(); ++i)
    all.emplace_back([&] {
      ++running;
      started.count_down();
    });
  started.wait();
  EXPECT_EQ(running.load(), threads());
  for (std::thread& one : all) one.join();
}

// Without threads or waits, as most tests are.
class Words : public Numbered {};
TEST_P(Words, Are_counted) {
  std::ostringstream text;
  for (int i = 0; i < items(); ++i) text << "word" << i % 3 << ' ';
  std::istringstream in(text.str());
  std::map<std::string, int> counts;
  for (std::string word; in >> word;) ++counts[word];
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts["word0"] + counts["word1"] + counts["word2"], items());
}

class Sorting : public Numbered {};
TEST_P(Sorting, Keeps_every_item) {
  std::mt19937 random(static_cast<unsigned>(number()));
  std::vector<int> all(static_cast<size_t>(items()));
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  std::ranges::sort(all);
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0), sum());
}

class Tables : public Numbered {};
TEST_P(Tables, Find_what_was_put_in) {
  std::unordered_map<std::string, int> table;
  for (int i = 0; i < items(); ++i) table[std::to_string(i)] = i;
  int total = 0;
  for (const auto& [key, value] : table) total += value;
  EXPECT_EQ(total, sum());
}

class Times : public Numbered {};
TEST_P(Times, Are_written_as_they_are_read) {
  const auto now = std::chrono::system_clock::now() + std::chrono::hours(number());
  std::stringstream text;
  text << now.time_since_epoch().count();
  std::chrono::system_clock::rep again = 0;
  text >> again;
  EXPECT_EQ(std::chrono::system_clock::time_point(std::chrono::system_clock::duration(again)), now);
}

constexpr int of_each_kind = 22;
#define SEVERAL(kind) INSTANTIATE_TEST_SUITE_P(Sound, kind, testing::Range(1, of_each_kind + 1))
SEVERAL(QueueOfNumbers);
SEVERAL(QueueOfReplies);
SEVERAL(Futures);
SEVERAL(Counter);
SEVERAL(AtomicCounter);
SEVERAL(Pipes);
SEVERAL(Sockets);
SEVERAL(Children);
SEVERAL(Files);
SEVERAL(Rounds);
SEVERAL(Semaphores);
SEVERAL(Clocks);
SEVERAL(Sleepers);
SEVERAL(Polling);
SEVERAL(ShortWaits);
SEVERAL(Settings);
SEVERAL(Ledger);
SEVERAL(Timers);
SEVERAL(Wakeups);
SEVERAL(Starts);
SEVERAL(Words);
SEVERAL(Sorting);
SEVERAL(Tables);
SEVERAL(Times);

}  // namespace
