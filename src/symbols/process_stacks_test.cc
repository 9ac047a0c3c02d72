#include "symbols/process_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

#include "support/code_fixture.h"
#include "util/files.h"

namespace unflake {
namespace {

using testing::HasSubstr;

// A child that has said that it is ready.
class Child {
 public:
  explicit Child(const std::string& program) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
    UniqueFd output(ends[0]);
    UniqueFd input(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(input.get(), STDOUT_FILENO);
      ::execl(program.c_str(), program.c_str(), nullptr);
      ::_exit(127);
    }
    input.reset();
    char byte = 0;
    if (::read(output.get(), &byte, 1) != 1) throw std::runtime_error("the child is not ready");
  }
  ~Child() {
    if (pid_ > 0) end();
  }

  pid_t pid() const { return pid_; }
  int end() {
    int status = 0;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
};

bool stands_at(const ThreadStack& stack, const std::string& function, const std::string& words) {
  return std::any_of(stack.frames.begin(), stack.frames.end(), [&](const ThreadFrame& frame) {
    return std::any_of(frame.frames.begin(), frame.frames.end(), [&](const Frame& inner) {
      return is_at(inner, function, words, "symbols_deadlock.cc");
    });
  });
}

// The threads have only said that they are about to wait.
std::vector<ThreadStack> stacks_in_deadlock(pid_t pid) {
  for (;;) {
    auto stacks = stacks_of(pid);
    if (!stacks) throw std::runtime_error(to_string(stacks.error()));
    const auto waits = [&](const char* function, const char* words) {
      return std::any_of(stacks->begin(), stacks->end(), [&](const ThreadStack& stack) {
        return stands_at(stack, function, words);
      });
    };
    if (waits("(anonymous namespace)::take_first", "waits for first") &&
        waits("(anonymous namespace)::take_second", "waits for second"))
      return *stacks;
  }
}

class ProcessStacks : public testing::TestWithParam<const char*> {
 protected:
  Child child{code_fixture(GetParam())};
};

TEST_P(ProcessStacks, Show_who_waits_for_whom) {
  const auto stacks = stacks_in_deadlock(child.pid());
  ASSERT_EQ(stacks.size(), 2u);
  EXPECT_TRUE(stands_at(stacks[0], "(anonymous namespace)::take_first", "waits for first"));
  EXPECT_TRUE(stands_at(stacks[1], "(anonymous namespace)::take_second", "waits for second"));
  EXPECT_EQ(stacks[0].tid, child.pid());
  EXPECT_EQ(stacks[1].name, "worker");
}

TEST_P(ProcessStacks, Go_down_to_main) {
  const auto stacks = stacks_in_deadlock(child.pid());
  const auto& frames = stacks[0].frames;
  EXPECT_TRUE(std::any_of(frames.begin(), frames.end(), [&](const ThreadFrame& frame) {
    return frame.image == code_fixture(GetParam()) && !frame.frames.empty() &&
           frame.frames.back().function == "main";
  }));
}

TEST_P(ProcessStacks, Are_bounded) {
  const auto stacks = stacks_of(child.pid(), {.threads = 1, .frames = 2});
  ASSERT_TRUE(stacks);
  ASSERT_EQ(stacks->size(), 1u);
  EXPECT_EQ(stacks->front().frames.size(), 2u);
}

TEST_P(ProcessStacks, Can_be_taken_again_and_again) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(stacks_of(child.pid()));
}

TEST_P(ProcessStacks, Leave_a_stopped_process_stopped) {
  ASSERT_EQ(::kill(child.pid(), SIGSTOP), 0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, child.pid(), &info, WSTOPPED), 0);
  EXPECT_TRUE(stacks_of(child.pid()));
  ASSERT_EQ(::kill(child.pid(), SIGCONT), 0);
  EXPECT_EQ(::waitid(P_PID, child.pid(), &info, WCONTINUED), 0);  // it was still stopped
}

TEST_P(ProcessStacks, Leave_the_exit_status_to_the_parent) {
  ASSERT_TRUE(stacks_of(child.pid()));
  const int status = child.end();
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ProcessStacks, testing::Values("deadlock_O0", "deadlock_O2"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ProcessStacksOfARunningProcess, Let_it_go_on) {
  void* shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& count = *new (shared) std::atomic<uint64_t>(0);
  const pid_t child = ::fork();
  while (child == 0) ++count;
  while (count == 0) ::sched_yield();
  ASSERT_TRUE(stacks_of(child));
  for (const uint64_t before = count; count == before;) ::sched_yield();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::munmap(shared, 4096);
}

TEST(ProcessStacksOfADyingProcess, Leave_its_exit_status_alone) {
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(7);
    for (int turn = 0; turn < i % 10; ++turn) ::sched_yield();
    const auto either = stacks_of(child);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(WEXITSTATUS(status), 7) << either.has_value();
  }
}

TEST(ProcessStacksOfNobody, Are_an_error) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(7);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
  const auto zombie = stacks_of(child);
  ASSERT_FALSE(zombie);
  EXPECT_THAT(zombie.error().what, HasSubstr("it has ended"));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_FALSE(stacks_of(child));
}

}  // namespace
}  // namespace unflake
