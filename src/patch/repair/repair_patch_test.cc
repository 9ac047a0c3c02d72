#include "patch/repair/repair_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/patched_project.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// What is late, with LATE until the test has looked; else a little.
const char late_header[] = R"(#pragma once
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
inline std::atomic<bool> looked{false};
inline void be_late() {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  while (std::getenv("LATE") != nullptr && !looked)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
)";

const char post_office[] = R"(#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "late.h"

class PostOffice {
 public:
  ~PostOffice() { carrier_.join(); }

  void send() {
    carrier_ = std::thread([this] {
      be_late();
      ++letters_;  // critical
    });
  }

  int delivered() const { return letters_; }

 private:
  std::thread carrier_;
  std::atomic<int> letters_{0};
};

TEST(PostOffice, Delivers_a_letter) {
  PostOffice office;
  office.send();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleep
  EXPECT_EQ(office.delivered(), 1);  // barrier, // fails
  looked = true;
}

TEST(PostOffice, Is_empty_at_first) {
  EXPECT_EQ(std::atomic<int>(0), 0);
}
)";

class RepairPatches : public testing::Test {
 protected:
  // Late, the test fails; with the patch, it waits.
  void expect_repair(RepairIdiom idiom) {
    project.build();
    ASSERT_NE(project.run(true), 0);
    expect_patched(idiom);
  }

  void expect_patched(RepairIdiom idiom) {
    const RepairPatch patch = project.patch(idiom);
    project.apply(patch);
    if (HasFatalFailure()) return;
    project.build();
    if (HasFatalFailure()) return;
    EXPECT_EQ(project.run(), 0) << project.read("output.txt") << patch.diff;
  }

  PatchedProject project;
};

class PostOfficePatches : public RepairPatches {
 protected:
  void SetUp() override {
    project.write("late.h", late_header);
    project.source("post_test.cc", post_office);
    project.libraries = "-lgtest -lgtest_main";
    project.hand_over();
    project.fails();
    project.sleeps();
    project.request.framework = Framework::gtest;
    project.request.test = "PostOffice.Delivers_a_letter";
  }
};

TEST_F(PostOfficePatches, A_sleep_becomes_a_wait_for_what_the_assertion_reads) {
  expect_repair(RepairIdiom::poll);
  EXPECT_THAT(project.read("post_test.cc"),
              HasSubstr("  office.send();\n"
                        "  EventuallyTrue([&] { return office.delivered() == 1; });  // sleep\n"
                        "  EXPECT_EQ(office.delivered(), 1);"));
}

TEST_F(PostOfficePatches, A_hand_over_replaces_the_sleep) {
  expect_patched(RepairIdiom::hand_over);
  const std::string patched = project.read("post_test.cc");
  EXPECT_THAT(patched,
              HasSubstr("      ++letters_;  // critical\n      UNFLAKE_REACHED(send_done);\n"));
  EXPECT_THAT(patched, HasSubstr("  office.send();\n  UNFLAKE_AWAIT(send_done, 1);\n  EXPECT_EQ("));
  EXPECT_THAT(patched,
              HasSubstr("Delivers_a_letter) {\n  UNFLAKE_SCOPE(send_done);\n  PostOffice"));
  EXPECT_EQ(project.shell("./program --gtest_repeat=3"), 0) << project.read("output.txt");
  EXPECT_EQ(project.read("unflake_sync.h"), unflake_sync_header());
}

TEST_F(PostOfficePatches, Each_patch_says_what_waits_for_what) {
  const auto patches = project.patches();
  ASSERT_EQ(patches.size(), 2u) << project.reasons();
  EXPECT_EQ(patches[0].idiom, RepairIdiom::poll);
  EXPECT_THAT(patches[0].what,
              HasSubstr("waits up to 10 s until what post_test.cc:30 asserts is true"));
  EXPECT_THAT(patches[1].what, HasSubstr("post_test.cc:30 waits until post_test.cc:15 was passed"));
  EXPECT_THAT(project.why_not, testing::Contains(HasSubstr("join: `carrier_` is not known there")));
}

TEST_F(RepairPatches, A_thread_is_joined_where_it_must_be_over) {
  project.write("late.h", late_header);
  project.source("join_test.cc", R"(#include <cassert>
#include <thread>
#include <vector>
#include "late.h"

static int sum = 0;

static void add() {
  be_late();
  sum = 3;  // critical
}

int main() {
  std::thread worker(add);  // start
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleep
  assert(sum == 3);  // barrier // fails
  looked = true;
  worker.join();
}
)");
  project.hand_over();
  project.request.hand_overs[0].critical.thread = "join_test.cc:14#1";
  project.sleeps();
  expect_repair(RepairIdiom::join);
  EXPECT_THAT(project.read("join_test.cc"),
              HasSubstr("// start\n  worker.join();\n  assert(sum == 3);  // barrier // fails\n"
                        "  looked = true;\n}"));
}

TEST_F(RepairPatches, Joins_elsewhere_ask_first) {
  project.write("late.h", late_header);
  project.source("member_test.cc", R"(#include <cstdlib>
#include <thread>
#include "late.h"

class Job {
 public:
  Job() : thread_([this] {
        be_late();
        result_ = 7;  // critical
      }) {}
  ~Job() {
    looked = true;
    thread_.join();
  }
  int result() {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleep
    return result_;  // barrier
  }

 private:
  std::atomic<int> result_{0};
  std::thread thread_;
};

int main() {
  Job job;
  if (job.result() != 7) return EXIT_FAILURE;
}
)");
  project.hand_over(1, "Job::Job()::{lambda()#1}::operator()");
  project.sleeps();
  expect_repair(RepairIdiom::join);
  const std::string patched = project.read("member_test.cc");
  EXPECT_THAT(patched,
              HasSubstr("    looked = true;\n    if (thread_.joinable()) thread_.join();\n"));
  EXPECT_THAT(
      patched,
      HasSubstr(
          "  int result() {\n    if (thread_.joinable()) thread_.join();\n    return result_;"));
}

TEST_F(RepairPatches, The_end_of_a_process_is_waited_for_and_left_to_who_asks_for_it) {
  project.source("child_test.cc", R"(#include <sys/wait.h>
#include <unistd.h>

#include <string>

class Child {
 public:
  Child() {
    if (pipe(ends_) != 0) _exit(1);
    pid_ = fork();
    if (pid_ != 0) return;
    usleep(50'000);
    _exit(write(ends_[1], "ab", 2) == 2 ? 0 : 1);  // critical
  }
  ~Child() { waitpid(pid_, nullptr, 0); }
  std::string text() {
    char bytes[8];
    const ssize_t size = read(ends_[0], bytes, sizeof bytes);  // barrier
    return std::string(bytes, static_cast<size_t>(size));
  }

 private:
  int ends_[2];
  pid_t pid_ = -1;
};

int main() {
  Child child;
  return child.text() == "ab" ? 0 : 1;
}
)");
  project.hand_over(1, "Child::Child");
  project.request.hand_overs[0].critical.thread = "child_test.cc:10#1";
  expect_patched(RepairIdiom::join);
  EXPECT_THAT(project.read("child_test.cc"),
              HasSubstr("waitid(P_PID, pid_, &ended, WEXITED | WNOWAIT);\n"));
}

TEST_F(RepairPatches, What_joins_later_is_called_earlier) {
  project.write("late.h", late_header);
  project.source("reader_test.cc", R"(#include <cstdlib>
#include <thread>
#include "late.h"

class Reader {
 public:
  explicit Reader(std::atomic<int>& news) : thread_([this, &news] {
        be_late();
        seen_ = news.load();  // critical
      }) {}
  int stop() {
    if (thread_.joinable()) thread_.join();
    return seen_;
  }

 private:
  int seen_ = 0;
  std::thread thread_;
};

int main() {
  std::atomic<int> news{1};
  Reader reader(news);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleep
  looked = std::getenv("LATE") == nullptr;
  news = 0;  // barrier
  looked = true;
  if (reader.stop() != 1) return EXIT_FAILURE;
}
)");
  project.hand_over(1, "Reader::Reader(std::atomic<int>&)::{lambda()#1}::operator()");
  project.sleeps();
  const RepairPatch patch = project.patch(RepairIdiom::join);
  EXPECT_THAT(patch.diff, HasSubstr("+  reader.stop();\n   news = 0;  // barrier"))
      << project.error;
  EXPECT_THAT(patch.what, HasSubstr("waits for the end of `reader.stop()`"));
}

TEST_F(RepairPatches, A_future_is_waited_for) {
  project.source("future_test.cc", R"(#include <cassert>
#include <future>
static int sum = 0;
static int add(int x) {
  sum += x;  // critical
  return sum;
}
int main() {
  auto added = std::async(std::launch::async, add, 3);
  assert(sum == 3);  // barrier // fails
  return added.get() - 3;
}
)");
  project.hand_over();
  project.request.hand_overs[0].critical.thread = "future_test.cc:9#1";
  project.apply(project.patch(RepairIdiom::join));
  EXPECT_THAT(project.read("future_test.cc"), HasSubstr("add, 3);\n  added.wait();\n  assert(sum"));
}

TEST_F(RepairPatches, Threads_of_a_container_are_joined_as_they_are_later) {
  project.source("many_test.cc", R"(#include <cassert>
#include <thread>
#include <vector>
static int sum = 0;
int main() {
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i)
    workers.emplace_back([] {
      ++sum;  // critical
    });
  assert(sum == 3);  // barrier // fails
  for (auto& worker : workers) {
    worker.join();
  }
}
)");
  project.hand_over(1, "operator()");
  project.apply(project.patch(RepairIdiom::join));
  EXPECT_THAT(project.read("many_test.cc"),
              HasSubstr("    });\n  for (auto& worker : workers) {\n    worker.join();\n  }\n  "
                        "assert(sum == 3);"));
}

TEST_F(RepairPatches, C_threads_are_joined_too) {
  project.source("c_test.c", R"(#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static int sum = 0;
static void *add(void *data) {
  sum = *(int *)data;  // critical
  return data;
}
int main(void) {
  pthread_t worker;
  int three = 3;
  void *end;
  if (pthread_create(&worker, NULL, add, &three) != 0) return 1;  // start
  usleep(20000);  // sleep
  assert(sum == 3);  // barrier // fails
  pthread_join(worker, &end);
  return 0;
}
)");
  project.hand_over();
  project.sleeps();
  project.fails();
  project.request.hand_overs[0].critical.thread = "c_test.c:13#1";
  const RepairPatch join = project.patch(RepairIdiom::join);
  const RepairPatch poll = project.patch(RepairIdiom::poll);
  EXPECT_THAT(poll.diff,
              HasSubstr("+  for (int tries = 0; tries < 10000 && !(sum == 3); ++tries) {\n"
                        "+    nanosleep(&(struct timespec){0, 1000000}, NULL);\n+  }  // sleep\n"));
  project.apply(join);
  EXPECT_THAT(project.read("c_test.c"),
              HasSubstr("// start\n  pthread_join(worker, &end);\n  assert(sum == 3);"));
}

TEST_F(RepairPatches, A_condition_variable_that_is_notified_is_waited_for) {
  project.write("late.h", late_header);
  project.source("notify_test.cc", R"(#include <cassert>
#include <condition_variable>
#include <mutex>
#include <thread>
#include "late.h"

int main() {
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
  std::thread worker([&] {
    be_late();
    std::lock_guard<std::mutex> lock(mutex);
    ready = true;  // critical
    changed.notify_all();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleep
  assert(ready);  // barrier // fails
  looked = true;
  worker.join();
}
)");
  project.hand_over(1, "operator()");
  project.sleeps();
  project.fails();
  expect_repair(RepairIdiom::notify);
  EXPECT_THAT(project.read("notify_test.cc"),
              HasSubstr("  });\n  {\n    std::unique_lock<std::mutex> lock(mutex);\n"
                        "    changed.wait_for(lock, std::chrono::seconds(10), [&] { return ready; "
                        "});\n  }\n  assert(ready);"));
}

TEST_F(RepairPatches, A_hand_over_spans_folders_languages_and_headers) {
  project.write("src/box.h", R"(#ifndef BOX_H
#define BOX_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
extern volatile int box;
void *fill(void *data);
#ifdef __cplusplus
}
#endif
#endif
)");
  project.source(
      "src/box.c",
      "#include \"box.h\"\r\n\r\nvolatile int box;\r\n\r\nvoid *fill(void *data)\r\n{\r\n"
      "\tif (data != NULL)\r\n\t\tbox = 1;  // critical\r\n\treturn NULL;\r\n}");
  project.write(
      "tests/look.h",
      "#pragma once\n#include \"../src/box.h\"\ninline int look() { return box; }  // barrier\n");
  project.source("tests/box_test.cc", R"(#include "look.h"
#include <pthread.h>

static int run() {
  pthread_t thread;
  int one = 1;
  if (pthread_create(&thread, nullptr, fill, &one) != 0) return 2;
  const int seen = look();
  pthread_join(thread, nullptr);
  return seen == 1 ? 0 : 1;
}

int main() {
  for (int i = 0; i < 100; ++i) {
    box = 0;
    if (const int failed = run()) return failed;
    if (i == 0) break;
  }
}
)");
  project.request.sources = {project.folder.file("tests/box_test.cc")};
  project.hand_over();
  const RepairPatch patch = project.patch(RepairIdiom::hand_over);
  project.apply(patch);
  EXPECT_THAT(project.read("src/box.c"),
              HasSubstr("#include \"box.h\"\r\n#include \"unflake_sync.h\"\r\n"));
  EXPECT_THAT(project.read("src/box.c"),
              HasSubstr("\tif (data != NULL) {\r\n\t\tbox = 1;  // "
                        "critical\r\n\t\tUNFLAKE_REACHED(fill_done);\r\n\t}\r\n"));
  EXPECT_THAT(project.read("tests/look.h"), HasSubstr("#include \"../src/unflake_sync.h\"\n"));
  EXPECT_THAT(project.read("tests/look.h"),
              HasSubstr("inline int look() {\n  UNFLAKE_AWAIT(fill_done, 1);\n  return box;\n}"));
  EXPECT_THAT(project.read("tests/box_test.cc"),
              HasSubstr("int main() {\n  UNFLAKE_SCOPE(fill_done);\n"));
  project.build();
  EXPECT_EQ(project.run(), 0) << project.read("output.txt");
}

TEST_F(RepairPatches, A_hand_over_spans_a_process_and_its_child) {
  project.source("daemon_test.cc", R"(#include <csignal>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

static volatile std::sig_atomic_t wanted = 0;

static int run_daemon() {
  if (std::getenv("LATE") != nullptr) ::usleep(100'000);
  std::signal(SIGHUP, [](int) { wanted = 1; });  // critical
  while (!wanted) ::usleep(1'000);
  return 0;
}

int main() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(run_daemon());
  ::usleep(20'000);       // sleep
  ::kill(pid, SIGHUP);    // barrier
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? 0 : 1;
}
)");
  project.hand_over(1, "run_daemon");
  project.sleeps();
  project.request.hand_overs[0].across_processes = true;
  expect_repair(RepairIdiom::hand_over);
  EXPECT_THAT(project.read("daemon_test.cc"),
              HasSubstr("int main() {\n  UNFLAKE_SCOPE_OF_PROCESSES(run_daemon_done);\n"));
}

const char tracker_test[] = R"(#include <cassert>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex mutex;
static std::condition_variable filled;
static int box = 0;
static std::vector<int> path;

static void follow() {
  for (int i = 0; i < 3; ++i) {
    std::unique_lock<std::mutex> lock(mutex);
    const auto patience = std::chrono::milliseconds(150);
    if (!filled.wait_for(lock, patience, [] { return box != 0; })) return;  // timed
    path.push_back(box);  // critical
    box = 0;
    lock.unlock();
    if (std::getenv("LATE") != nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(60));
  }
}

int main() {
  std::thread follower(follow);
  for (int i = 1; i <= 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleep
    {
      std::lock_guard<std::mutex> lock(mutex);  // barrier
      box = i;
    }
    filled.notify_one();
  }
  follower.join();
  assert(path.size() == 3);  // fails
}
)";

TEST_F(RepairPatches, In_a_loop_each_turn_waits_for_the_one_before) {
  project.source("tracker_test.cc", tracker_test);
  project.hand_over(1, "follow");
  project.request.hand_overs[0].ahead = 1;
  project.fails();
  project.sleeps();
  expect_repair(RepairIdiom::hand_over);
  EXPECT_THAT(project.read("tracker_test.cc"), HasSubstr("UNFLAKE_AWAIT_EACH(follow_done, 1);"));
}

TEST_F(RepairPatches, A_time_out_that_ran_out_is_made_longer_when_order_alone_is_not_enough) {
  project.source("tracker_test.cc", tracker_test);
  project.hand_over(1, "follow");
  project.request.hand_overs[0].ahead = 1;
  project.fails();
  project.sleeps();
  project.request.patience = NewBound{project.at("timed"), "pthread_cond_clockwait",
                                      Duration(150'000), Duration(10'000'000)};
  const auto patches = project.patches();
  ASSERT_GE(patches.size(), 2u) << project.reasons();
  EXPECT_THAT(patches.back().diff, HasSubstr("UNFLAKE_AWAIT_EACH"));
  EXPECT_THAT(patches.back().diff, HasSubstr("patience = std::chrono::milliseconds(10000)"));
  EXPECT_THAT(patches.back().what, HasSubstr("waits 10.0 s instead of 150 ms"));
}

TEST_F(RepairPatches, Who_uses_another_object_while_it_goes_away_is_defined_behind_it) {
  project.source("metrics_test.cc", R"(#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

class Registry {
 public:
  ~Registry() {
    gone_ = true;
    const int late = std::getenv("LATE") != nullptr ? 100 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(late));
  }
  void add() {
    assert(!gone_);  // fails
  }

 private:
  std::atomic<bool> gone_{false};
};

Registry& registry();

class Sampler {
 public:
  Sampler() : thread_([this] { sample(); }) {}
  ~Sampler() {
    stopping_ = true;  // critical
    thread_.join();
  }

 private:
  void sample() {
    while (!stopping_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (!stopping_) registry().add();  // barrier
    }
  }

  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

Sampler sampler;
Registry the_registry;

Registry& registry() {
  return the_registry;
}

}  // namespace

int main() {}
)");
  project.hand_over();
  project.fails();
  expect_repair(RepairIdiom::definition);
  EXPECT_THAT(project.read("metrics_test.cc"),
              HasSubstr("Registry the_registry;\nSampler sampler;"));
}

TEST_F(RepairPatches, A_test_that_crashes_somewhere_is_found_by_its_name) {
  project.source(
      "a.cc",
      "int x;\nvoid f() {\n  x = 1;  // critical\n}\nint g() {\n  return x;  // barrier\n}\n");
  project.source("b_test.cc",
                 "#define TEST(a, b) void a##_##b()\nTEST(Suite, Name) {\n  (void)0;\n}\n");
  project.hand_over();
  project.request.test = "Suite.Name";
  EXPECT_THAT(project.patch(RepairIdiom::hand_over).diff,
              HasSubstr(" TEST(Suite, Name) {\n+  UNFLAKE_SCOPE(f_done);\n"))
      << project.reasons();
  project.request.test = "Suite.Other";
  EXPECT_EQ(project.patch(RepairIdiom::hand_over).diff, "");
  EXPECT_THAT(project.error, HasSubstr("the beginning of the test was not found"));
}

TEST_F(RepairPatches, A_fixture_that_does_work_holds_the_scope) {
  project.source(
      "fixture_test.cc",
      R"(#define TEST_F(fixture, name) struct fixture##_##name : fixture { void TestBody(); }; void fixture##_##name::TestBody()
#define EXPECT_TRUE(x) (void)(x)

class Server {
 public:
  void SetUp() { up = true; }  // critical
  bool up = false;
};

TEST_F(Server, Answers) {
  EXPECT_TRUE(up);  // barrier // fails
}
)");
  project.hand_over();
  project.fails();
  const RepairPatch patch = project.patch(RepairIdiom::hand_over);
  EXPECT_THAT(patch.diff, HasSubstr(" class Server {\n+  UNFLAKE_SCOPE(SetUp_done);\n  public:\n"));
  EXPECT_THAT(patch.cautions, ElementsAre("all tests of Server wait where this one does"));
}

struct FrameworkCase {
  const char* name;
  const char* header;
  const char* test;
  const char* wait;
};

class PollInFramework : public testing::TestWithParam<FrameworkCase> {};

TEST_P(PollInFramework, A_wait_is_a_check_of_the_framework) {
  PatchedProject project;
  project.source("framework_test.cc", std::string(GetParam().header) + R"(
#include <atomic>
#include <string>
#include <thread>
#include <utility>
static std::atomic<int> count{0};
static std::pair<int, int> both() { return {count, 2}; }
)" + GetParam().test);
  project.hand_over();
  project.fails();
  project.sleeps();
  EXPECT_THAT(project.patch(RepairIdiom::poll).diff, HasSubstr(GetParam().wait))
      << project.reasons();
}

INSTANTIATE_TEST_SUITE_P(
    All, PollInFramework,
    testing::Values(
        FrameworkCase{"doctest", "#include <doctest/doctest.h>", R"(
TEST_CASE("counts") {
  std::thread([] { count = 1; }).detach();  // critical
  std::this_thread::sleep_for(std::chrono::milliseconds(3));  // sleep
  REQUIRE_EQ(count, 1);  // barrier // fails
}
)",
                      "+  EventuallyTrue([&] { return count == 1; });  // sleep"},
        FrameworkCase{"catch2", "#include <catch2/catch.hpp>", R"(
TEST_CASE("counts") {
  std::thread([] { count = 1; }).detach();  // critical
  std::this_thread::sleep_for(std::chrono::milliseconds(3));  // sleep
  CHECK((both() == std::pair<int, int>(1, 2)));  // barrier // fails
}
)",
                      "+  EventuallyTrue([&] { return (both() == std::pair<int, int>(1, 2)); });"},
        FrameworkCase{"boost", "#include <boost/test/unit_test.hpp>", R"(
BOOST_AUTO_TEST_CASE(counts) {
  std::thread([] { count = 1; }).detach();  // critical
  std::this_thread::sleep_for(std::chrono::milliseconds(3));  // sleep
  BOOST_REQUIRE_EQUAL(count.load(), 1);  // barrier // fails
}
)",
                      "+  EventuallyTrue([&] { return count.load() == 1; });"}),
    [](const auto& info) { return info.param.name; });

TEST_F(RepairPatches, A_main_that_returns_what_it_finds_is_asked_like_an_assertion) {
  project.write("late.h", late_header);
  project.source("plain_test.cc", R"(#include <atomic>
#include <cstdlib>
#include <thread>
#include "late.h"

static std::atomic<int> count{0};

int main() {
  std::thread sender([] {
    be_late();
    ++count;
  });
  sender.detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleep
  const int seen = count.load();
  looked = true;
  if (seen == 1) return EXIT_SUCCESS;
  return EXIT_FAILURE;
}
)");
  project.sleeps();
  project.request.framework = Framework::command;
  const RepairPatch patch = project.patch(RepairIdiom::poll);
  EXPECT_THAT(patch.diff,
              HasSubstr("+  EventuallyTrue([&] { return count.load() == 1; });  // sleep\n"))
      << project.error;
}

TEST_F(RepairPatches, What_was_read_before_the_assertion_is_read_again) {
  project.write("late.h", late_header);
  project.source("mail_test.cc", R"(#include <cassert>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>
#include "late.h"

static std::atomic<int> count{0};
static std::vector<int> mails() {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(i);
  return all;
}

int main() {
  std::thread sender([] {
    be_late();
    ++count;  // critical
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleep
  const auto seen = mails();  // barrier
  assert(seen.size() == 1);   // fails
  sender.join();
}
)");
  project.hand_over(1, "main::{lambda()#1}::operator()");
  project.fails();
  project.sleeps();
  const RepairPatch patch = project.patch(RepairIdiom::poll);
  EXPECT_THAT(patch.diff,
              HasSubstr("+  EventuallyTrue([&] { return mails().size() == 1; });  // sleep\n"
                        "   const auto seen = mails();"))
      << project.error;
}

TEST_F(RepairPatches, What_the_wait_has_read_can_be_kept) {
  project.source("answer_test.cc", R"(#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

static std::atomic<int> letters{0};
static std::string ask() {  // takes it away
  const bool some = letters.load() > 0;
  std::string answer = some ? "pong" : "";
  return answer;
}

int main() {
  std::thread helper([] {
    const int late = std::getenv("LATE") != nullptr ? 100 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(late));
    letters = 1;  // critical
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleep
  const std::string answer = ask();  // barrier
  helper.join();
  if (answer == "pong") return EXIT_SUCCESS;
  return EXIT_FAILURE;
}
)");
  project.hand_over(1, "main::{lambda()#1}::operator()");
  project.sleeps();
  project.build();
  ASSERT_NE(project.run(true), 0);
  const auto patches = project.patches();
  const auto kept = std::ranges::find_if(patches, [](const RepairPatch& patch) {
    return patch.what.find("keeps what it has read") != std::string::npos;
  });
  ASSERT_NE(kept, patches.end()) << project.reasons();
  EXPECT_EQ(kept->idiom, RepairIdiom::poll);
  EXPECT_THAT(kept->diff, HasSubstr("+  std::string answer{};\n"
                                    "+  EventuallyTrue([&] {\n"
                                    "+    answer = ask();\n"
                                    "+    return answer == \"pong\";\n"
                                    "+  });"));
  project.apply(*kept);
  project.build();
  EXPECT_EQ(project.run(true), 0) << project.read("output.txt");
}

// One source for all of them: it is parsed once.
class PollCondition : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    project = new PatchedProject;
    project->source("poll_test.cc", R"(#include <cassert>
#include <chrono>
#include <future>
#include <map>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>
static std::vector<int> values;
static std::map<int, int> table;
static std::string text;
static const char* word = "";
static int total = 0;
static int pop() { const int last = values.back(); values.pop_back(); return last; }
static int sum() { int all = 0; for (int each : values) all += each; return all; }
static int counted() { return ++total; }
int unknown_size();
static std::future<int> later;
struct Reply { int code; std::string text; };
static int shared_socket = 0;
static std::string written() {
  std::ostringstream content;
  content << 1 << std::string("a");
  return content.str();
}
static Reply reply() { Reply all{}; all.code = 1; all.text.append("a"); return all; }
static int greeting() {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  char byte = 0;
  ::recv(socket, &byte, 1, 0);
  return byte;
}
static int received() { char byte = 0; ::recv(shared_socket, &byte, 1, 0); return byte; }
static void fill(Reply& reply) { reply.code = 1; }
static Reply parameter;
static int filled() { fill(parameter); return 1; }
int main() {
  values.push_back(1);  // critical
  assert(values.size() == 1 && values[0] == 1);  // elements // barrier
  assert(sum() == 1);                            // sum
  assert(std::string(word) == "a");              // word
  assert(unknown_size() == 1);                   // unknown
  assert(pop() == 1);                            // pop
  assert(counted() == 1);                        // counted
  assert(++total == 1);                          // step
  assert(later.get() == 1);                      // future
  assert(table[1] == 1);                         // table
  assert(word == "a");                           // address
  assert(reply().code == 1);                     // reply
  assert(greeting() == 1);                       // greeting
  assert(written() == "1a");                     // written
  assert(received() == 1);                       // received
  assert(filled() == 1);                         // filled
  assert(std::string(std::move(text)) == "");    // move
}
)");
    project->hand_over();
  }
  static void TearDownTestSuite() { delete project; }

  // Empty when the wait is offered.
  std::string refusal(const std::string& mark) {
    project->request.failure.file = project->at(mark).spot.file;
    project->request.failure.line = project->at(mark).spot.line;
    const RepairPatch poll = project->patch(RepairIdiom::poll);
    cautions = poll.cautions;
    return poll.diff.empty() ? project->error : "";
  }

  static PatchedProject* project;
  std::vector<std::string> cautions;
};

PatchedProject* PollCondition::project = nullptr;

TEST_F(PollCondition, What_only_looks_is_asked_again) {
  for (const char* mark : {"elements", "sum", "word", "reply", "greeting", "written"})
    EXPECT_EQ(refusal(mark), "");
}

TEST_F(PollCondition, What_cannot_be_seen_is_offered_with_a_caution) {
  EXPECT_EQ(refusal("unknown"), "");
  EXPECT_THAT(cautions, testing::Contains("unknown_size() is called again and again"));
}

TEST_F(PollCondition, What_changes_something_is_not) {
  EXPECT_THAT(refusal("pop"), HasSubstr("pop() cannot be called again and again"));
  EXPECT_THAT(refusal("counted"), HasSubstr("changes a variable"));
  EXPECT_THAT(refusal("step"), HasSubstr("changes a variable"));
  EXPECT_THAT(refusal("future"), HasSubstr("get() may change something"));
  EXPECT_THAT(refusal("table"), HasSubstr("may change something"));
  EXPECT_THAT(refusal("address"), HasSubstr("addresses of texts"));
  EXPECT_THAT(refusal("move"), HasSubstr("move"));
  EXPECT_THAT(refusal("received"), HasSubstr("it calls recv()"));
  EXPECT_THAT(refusal("filled"), HasSubstr("changes a variable"));
}

TEST_F(RepairPatches, A_bound_that_the_assertion_does_not_name_is_found_in_its_file) {
  project.source("loop_test.cc", R"(#include <cassert>
#include <chrono>
#include <thread>
static const auto patience = std::chrono::milliseconds(60);
static const auto step = std::chrono::milliseconds(5);
int main() {
  const auto began = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(step);
  const bool in_time = std::chrono::steady_clock::now() - began < patience;
  assert(in_time);  // fails
}
)");
  project.fails();
  NewBound bound;
  bound.place = project.at("fails");
  bound.least_old = std::chrono::milliseconds(58);
  bound.most_old = std::chrono::milliseconds(63);
  bound.new_value = std::chrono::milliseconds(1100);
  project.request.bound = bound;
  const RepairPatch patch = project.patch(RepairIdiom::bound);
  EXPECT_EQ(patch.what, "loop_test.cc:4 allows 1.10 s instead of 60.0 ms");
  EXPECT_THAT(patch.diff,
              HasSubstr("+static const auto patience = std::chrono::milliseconds(1100);"));
}

TEST_F(RepairPatches, A_bound_of_an_exact_timing_test_is_changed) {
  project.source("bound_test.cc", R"(#include <chrono>
#define EXPECT_LT(a, b) (void)((a) < (b))
using namespace std::chrono_literals;
void f(std::chrono::milliseconds took) {
  EXPECT_LT(took, 100ms);  // barrier
}
)");
  project.request.bound = NewBound{project.at("barrier"), "", std::chrono::milliseconds(100),
                                   std::chrono::milliseconds(750)};
  const RepairPatch patch = project.patch(RepairIdiom::bound);
  EXPECT_THAT(patch.diff, HasSubstr("+  EXPECT_LT(took, 750ms);")) << project.reasons();
  EXPECT_EQ(patch.what, "bound_test.cc:5 allows 750 ms instead of 100 ms");
}

class RefusedSources : public RepairPatches {
 protected:
  void SetUp() override {
    project.source("a_test.cc",
                   "int x;\nint main() {\n  x = 1;  // critical\n  return x;  // barrier\n}\n");
    project.hand_over();
  }
  std::string refusal() {
    EXPECT_EQ(project.patches().size(), 0u);
    return project.error;
  }
};

TEST_F(RefusedSources, Without_a_compilation_database_both_places_are_named) {
  std::filesystem::remove(project.folder.file("compile_commands.json"));
  std::filesystem::create_directory(project.folder.file(".git"));
  EXPECT_THAT(refusal(),
              HasSubstr("there is no compile_commands.json, without which no patch is written: "
                        "a_test.cc:4 has to wait for a_test.cc:3"));
}

TEST_F(RefusedSources, A_source_that_is_newer_than_the_program_is_refused) {
  project.write("program", "");
  std::filesystem::last_write_time(
      project.folder.file("program"),
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  project.request.binary = project.folder.file("program");
  EXPECT_THAT(refusal(), HasSubstr("the source is newer than the program"));
}

TEST_F(RefusedSources, A_read_only_source_is_refused) {
  std::filesystem::permissions(project.folder.file("a_test.cc"),
                               std::filesystem::perms::owner_read);
  EXPECT_THAT(refusal(), HasSubstr("the source is read-only"));
}

TEST_F(RefusedSources, A_generated_source_is_refused) {
  project.write("build/made.cc", "int x;  // made\n");
  project.request.build_folder = project.folder.file("build");
  project.request.hand_overs[0].critical = project.at("made");
  EXPECT_THAT(refusal(), HasSubstr("the source was generated by the build"));
}

TEST_F(RefusedSources, A_source_that_is_gone_or_of_somebody_else_is_refused) {
  TempFolder other;
  std::ofstream(other.file("b.cc")) << "int y;\n";
  project.request.hand_overs[0].critical.spot = {other.file("b.cc"), 1, ""};
  EXPECT_THAT(refusal(), HasSubstr("does not belong to the project"));
  project.request.hand_overs[0].critical.spot = {"/nowhere/c.cc", 1, ""};
  EXPECT_THAT(refusal(), HasSubstr("there is no such source file"));
  project.request.hand_overs[0].critical.spot = {project.folder.file("a_test.cc"), 99, ""};
  EXPECT_THAT(refusal(), HasSubstr("the file has no line 99"));
}

}  // namespace
}  // namespace unflake
