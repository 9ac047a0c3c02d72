#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>

#include "faults/child.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Some tests end at once and one never does, so that whatever is left behind stays.
std::vector<std::string> hanging_suite(const std::string& store, bool fork_server) {
  std::vector<std::string> words{UNFLAKE_COMMAND,
                                 "run",
                                 UNFLAKE_FIXTURES "/gtest_cases",
                                 "Arithmetic.*",
                                 "Ending.Hangs",
                                 "SafeDeathTest.*",
                                 "Prefix.*",
                                 "-n",
                                 "1000",
                                 "--jobs",
                                 "3",
                                 "--json",
                                 "--store",
                                 store};
  if (fork_server) words.push_back("--fork-server");
  return words;
}

void execute(std::vector<std::string>& words, int output) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
  ::execv(argv[0], argv.data());
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string id = std::to_string(pid);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

// An unflake whose orphans become children of this process: nothing of it can get out of sight.
class DoomedUnflake {
 public:
  explicit DoomedUnflake(std::vector<std::string> words) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_ = ::fork();
    if (pid_ == 0) {
      execute(words, output_.write_end.get());
      ::_exit(127);
    }
    output_.write_end.reset();
  }

  // Until it has said so many bytes of what happens, and then a little into whatever is next.
  void let_run(size_t bytes, std::chrono::microseconds more) {
    std::string buffer(256, '\0');
    for (size_t said = 0; said < bytes;) {
      const ssize_t size = ::read(output_.read_end.get(), buffer.data(), buffer.size());
      ASSERT_GT(size, 0) << "it ended by itself";
      said += static_cast<size_t>(size);
    }
    for (const auto end = Clock::now() + more; Clock::now() < end;) {
    }
  }

  void kill() { ::kill(pid_, SIGKILL); }

  // As `pkill -9 unflake` does: nobody is left who could end the tests.
  void kill_with_supervisors() {
    ::kill(pid_, SIGSTOP);
    auto processes = children_of(pid_);
    processes.push_back(pid_);
    for (const pid_t pid : processes) ::kill(pid, SIGKILL);
  }

  // Whether all that it has started is gone, too. A test that is left would never be.
  bool leaves_nothing() {
    for (const auto end = Clock::now() + 60s; Clock::now() < end;) {
      const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
      if (ended < 0) return true;
      if (ended == 0) ::poll(nullptr, 0, 1);
    }
    end_all();
    return false;
  }

 private:
  static void end_all() {
    for (auto left = children_of(::getpid()); !left.empty(); left = children_of(::getpid()))
      for (const pid_t pid : left) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
      }
  }

  Pipe output_;
  pid_t pid_ = 0;
};

class KilledUnflake : public testing::TestWithParam<bool> {};

TEST_P(KilledUnflake, Leaves_no_test_running_whenever_it_happens) {
  const TempFolder folder;
  std::mt19937 random(4321);
  for (int round = 0; round < 40; ++round) {
    const size_t bytes = std::uniform_int_distribution<size_t>(1, 5'000)(random);
    const std::chrono::microseconds more(std::uniform_int_distribution(0, 3000)(random));
    DoomedUnflake unflake(hanging_suite(folder.file("history.db"), GetParam()));
    unflake.let_run(bytes, more);
    unflake.kill();
    ASSERT_TRUE(unflake.leaves_nothing()) << "killed after " << bytes << " bytes";
  }
}

TEST_P(KilledUnflake, With_its_supervisors_leaves_no_test_running_either) {
  const TempFolder folder;
  std::mt19937 random(1234);
  for (int round = 0; round < 20; ++round) {
    const size_t bytes = std::uniform_int_distribution<size_t>(1, 5'000)(random);
    DoomedUnflake unflake(hanging_suite(folder.file("history.db"), GetParam()));
    unflake.let_run(bytes, 0us);
    unflake.kill_with_supervisors();
    ASSERT_TRUE(unflake.leaves_nothing()) << "killed after " << bytes << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(, KilledUnflake, testing::Bool(), [](const auto& param) {
  return std::string(param.param ? "forked" : "spawned");
});

}  // namespace
}  // namespace unflake
