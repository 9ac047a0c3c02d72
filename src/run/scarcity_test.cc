#include "run/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "run/local_executor.h"
#include "util/files.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::IsEmpty;
using testing::SizeIs;
using End = ProcessResult::End;

const std::string misbehaving_program = UNFLAKE_FIXTURES "/misbehave";

std::vector<int> numbers_in(const std::string& text) {
  std::istringstream in(text);
  std::vector<int> numbers;
  for (int number; in >> number;) numbers.push_back(number);
  return numbers;
}

std::vector<pid_t> children(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  std::vector<pid_t> found;
  for (pid_t child; file >> child;) found.push_back(child);
  return found;
}

std::vector<pid_t> children_once_there_are(size_t count, pid_t pid) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  std::vector<pid_t> found = children(pid);
  for (; found.size() != count && std::chrono::steady_clock::now() < end; found = children(pid))
    std::this_thread::yield();
  return found;
}

std::string name_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

auto count_competitors(pid_t supervisor) {
  return std::ranges::count(children(supervisor), "unflake-busy", name_of);
}

bool dies(const UniqueFd& process) {
  pollfd gone{process.get(), POLLIN, 0};
  return ::poll(&gone, 1, 60'000) == 1;
}

std::vector<int> own_cores() {
  cpu_set_t cores;
  ::sched_getaffinity(0, sizeof cores, &cores);
  std::vector<int> numbers;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) numbers.push_back(core);
  return numbers;
}

constexpr Conditions one_core{true, 1, 0};
constexpr Conditions hardly_any_time{false, 0.01, 0};

// How a run is started.
enum class Way { spawned, with_agent, forked };

class ScarcityTest : public testing::TestWithParam<Way> {
 protected:
  ScarcityTest() {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {  // what another test's controller has left
    }
    remake({});
  }

  void remake(LocalOptions options) {
    options.grace = 1h;  // whoever hears SIGTERM ends
    executor_.reset();
    executor_ = std::move(*LocalExecutor::create(options, interrupts_));
  }

  Experiment experiment(std::vector<std::string> words, const Conditions& conditions,
                        Duration timeout = 1h) const {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"command", words[0]};
    test->command.argv = std::move(words);
    test->command.argv.insert(test->command.argv.begin(), misbehaving_program);
    Plan plan;
    plan.agent = GetParam() == Way::with_agent;
    return {test, plan, timeout, false, GetParam() == Way::forked, conditions};
  }

  ProcessResult run(std::vector<std::string> words, const Conditions& conditions,
                    Duration timeout = 1h) {
    auto result = executor_->run(experiment(std::move(words), conditions, timeout));
    EXPECT_TRUE(result) << (result ? "" : to_string(result.error()));
    return result ? result->process : ProcessResult{};
  }

  ProcessResult next_finished() {
    return std::get<Finished>(executor_->wait(std::nullopt)).result.process;
  }

  static pid_t supervisor() { return children(::getpid()).at(0); }

  // A server and the child that it has ready exist between runs too.
  static size_t servers() { return GetParam() == Way::forked ? 2 : 0; }

  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_;
};

INSTANTIATE_TEST_SUITE_P(Run, ScarcityTest,
                         testing::Values(Way::spawned, Way::with_agent, Way::forked),
                         [](const auto& info) {
                           return info.param == Way::spawned      ? "spawned"
                                  : info.param == Way::with_agent ? "with_agent"
                                                                  : "forked";
                         });

TEST_P(ScarcityTest, One_core_holds_for_a_test_and_what_it_starts) {
  const std::vector<int> cores = numbers_in(run({"cores"}, one_core).output.head);
  EXPECT_THAT(cores, AllOf(SizeIs(2), Each(own_cores().at(0))));
}

TEST_P(ScarcityTest, The_next_run_has_all_cores_again) {
  run({"exit", "0"}, one_core);
  EXPECT_THAT(numbers_in(run({"cores"}, {}).output.head), SizeIs(2 * own_cores().size()));
}

TEST_P(ScarcityTest, Runs_side_by_side_have_a_core_each) {
  if (own_cores().size() < 2) GTEST_SKIP() << "there is one core only";
  LocalOptions options;
  options.jobs = 2;
  remake(options);
  for (int i = 0; i < 2; ++i) executor_->start(experiment({"cores"}, one_core));
  const auto one = numbers_in(next_finished().output.head);
  const auto other = numbers_in(next_finished().output.head);
  ASSERT_THAT(one, SizeIs(2));
  ASSERT_THAT(other, SizeIs(2));
  EXPECT_NE(one[0], other[0]);
}

TEST_P(ScarcityTest, A_share_of_the_time_means_to_be_stopped_and_continued_all_the_time) {
  const ProcessResult result = run({"wait-for-continues", "5"}, {false, 0.5, 0});
  EXPECT_EQ(result.end, End::exited);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.leftovers, 0);
}

// Of 400 ms it may have 40. A busy machine can only take more of that away.
TEST_P(ScarcityTest, A_busy_test_uses_no_more_than_its_share) {
  const ProcessResult result = run({"be-busy", "400"}, {false, 0.1, 0});
  EXPECT_EQ(result.end, End::exited);
  EXPECT_LE(result.user_cpu + result.system_cpu, result.duration / 2);
}

// It obeys SIGTERM, which nobody does while stopped.
TEST_P(ScarcityTest, A_stopped_test_is_ended_at_its_time_out) {
  const ProcessResult result = run({"hang"}, hardly_any_time, 100ms);
  EXPECT_EQ(result.end, End::timed_out);
  EXPECT_EQ(result.code, SIGTERM);
}

TEST_P(ScarcityTest, A_stopped_test_is_ended_when_it_is_cancelled) {
  executor_->start(experiment({"hang"}, hardly_any_time));
  children_once_there_are(servers() + 2, supervisor());
  executor_->cancel_all();
  EXPECT_EQ(next_finished().end, End::cancelled);
}

TEST_P(ScarcityTest, What_a_stopped_test_leaves_behind_is_ended) {
  const ProcessResult result = run({"leave-a-thread"}, {false, 0.3, 0});
  EXPECT_EQ(result.leftovers, 1);
}

TEST_P(ScarcityTest, Competitors_live_as_long_as_the_run) {
  executor_->start(experiment({"hang"}, {false, 1, 3}));
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (count_competitors(supervisor()) < 3 && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_EQ(count_competitors(supervisor()), 3);
  executor_->cancel_all();
  EXPECT_EQ(next_finished().leftovers, 0);
  EXPECT_EQ(count_competitors(supervisor()), 0);
}

TEST_P(ScarcityTest, Everything_at_once_changes_nothing_but_time) {
  const ProcessResult result = run({"exit", "7"}, {true, 0.5, 2});
  EXPECT_EQ(result.end, End::exited);
  EXPECT_EQ(result.code, 7);
  EXPECT_EQ(result.leftovers, 0);
  EXPECT_THAT(children_once_there_are(servers(), supervisor()), SizeIs(servers()));
}

TEST_P(ScarcityTest, Conditions_that_make_no_sense_are_bounded) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Conditions& conditions : {Conditions{false, -1, -1}, {true, nan, 0}, {false, 7, 0}})
    EXPECT_EQ(run({"exit", "7"}, conditions).code, 7);
}

TEST_P(ScarcityTest, A_test_that_kills_its_supervisor_leaves_nothing_running) {
  EXPECT_EQ(run({"kill-parent"}, {true, 0.5, 2}).end, End::not_started);
  EXPECT_THAT(children(supervisor()), IsEmpty());
  EXPECT_THAT(children(::getpid()), SizeIs(1));
}

// Somebody kills the supervisor, and there is no unflake that would clean up after it.
TEST(Scarcity, Nobody_outlives_the_supervisor_not_even_stopped) {
  int says[2];
  ASSERT_EQ(::pipe(says), 0);
  const pid_t controller = ::fork();
  if (controller == 0) {
    auto supervisor = start_supervisor();
    Launch launch;
    launch.command.argv = {misbehaving_program, "hang"};
    launch.conditions = {true, 0.01, 2};
    supervisor->launch(encode(launch));
    if (::write(says[1], &supervisor->pid, sizeof(pid_t)) != sizeof(pid_t)) ::_exit(1);
    for (;;) ::pause();
  }
  pid_t supervisor = 0;
  ASSERT_EQ(::read(says[0], &supervisor, sizeof supervisor), ssize_t{sizeof supervisor});
  std::vector<UniqueFd> processes;
  for (const pid_t pid : children_once_there_are(4, supervisor))
    processes.push_back(open_pidfd(pid));
  EXPECT_THAT(processes, SizeIs(4));  // the test, two competitors and the one who stops it
  ::kill(supervisor, SIGKILL);
  for (const UniqueFd& process : processes) EXPECT_TRUE(dies(process));
  ::kill(controller, SIGKILL);
  ::waitpid(controller, nullptr, 0);
  ::close(says[0]);
  ::close(says[1]);
}

}  // namespace
}  // namespace unflake
