#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "agent_runs.h"
#include "util/files.h"

namespace unflake {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Threads = Intervention::Threads;

constexpr Duration quiescence_bound = seconds(30);
constexpr Duration soon = seconds(10);  // on a busy machine; much less than the quiescence_bound
constexpr auto a_while = milliseconds(300);

std::string message_of(const ExperimentResult& result) {
  return result.outcome.failures.empty() ? "" : result.outcome.failures.front().message;
}

ExperimentResult deadlock(const std::string& situation) {
  AgentRuns runs({"waiting", situation});
  return runs.run(AgentRuns::watching(), seconds(60));
}

TEST(Quiescence, Crossed_locks_are_told_as_a_deadlock_with_their_owners) {
  const ExperimentResult result = deadlock("crossed");
  EXPECT_EQ(result.outcome.kind, OutcomeKind::timeout);
  EXPECT_LT(result.process.duration, soon);
  const std::string text = message_of(result);
  EXPECT_THAT(text, HasSubstr("deadlock: main waits at waiting.cc:"));
  EXPECT_THAT(text, HasSubstr(":pthread_mutex_lock for waiting.cc:"));
  EXPECT_THAT(text, HasSubstr(":pthread_mutex_lock for main"));
}

TEST(Quiescence, A_condition_that_nobody_signals_is_a_deadlock) {
  const std::string text = message_of(deadlock("join"));
  EXPECT_THAT(text, HasSubstr("deadlock: main waits at waiting.cc:"));
  EXPECT_THAT(text, HasSubstr(":pthread_join for waiting.cc:"));
  EXPECT_THAT(text, HasSubstr(":pthread_cond_wait for what nobody is left to do"));
}

TEST(Quiescence, A_pipe_of_which_the_test_has_both_ends_is_a_deadlock) {
  EXPECT_THAT(message_of(deadlock("pipe")), HasSubstr(":read for what nobody is left to do"));
}

TEST(Quiescence, A_deadlock_may_span_processes) {
  const std::string text = message_of(deadlock("child"));
  EXPECT_THAT(text, HasSubstr(":waitpid for "));
  EXPECT_THAT(text, HasSubstr(":pthread_mutex_lock"));
}

TEST(Quiescence, A_run_without_the_agent_is_left_alone) {
  AgentRuns runs({"waiting", "join"});
  const ExperimentResult result = runs.run(Plan(), milliseconds(500));
  EXPECT_GE(result.process.duration, milliseconds(500));
}

// --- What looks like a deadlock and is none ---

class Woken : public testing::TestWithParam<const char*> {};

TEST_P(Woken, By_something_that_no_thread_of_the_test_does) {
  AgentRuns runs({"waiting", GetParam()});
  const ExperimentResult result = runs.run(AgentRuns::watching());
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass) << message_of(result);
}

INSTANTIATE_TEST_SUITE_P(Quiescence, Woken, testing::Values("interval", "timer", "alarm", "raw"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Quiescence, A_writer_that_only_sleeps_is_waited_for) {
  AgentRuns runs({"/bin/sh", "-c", "(sleep 0.3; echo) | " + agent_fixture("waiting") + " input"});
  EXPECT_EQ(runs.run(AgentRuns::watching()).outcome.kind, OutcomeKind::pass);
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "unflake-waiting-XXXXXX") {
    std::string name = path_.string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

TEST(Quiescence, A_semaphore_in_a_file_may_be_posted_by_anybody) {
  const Folder folder;
  const std::string path = folder.file("semaphore");
  std::ofstream(path) << std::string(sizeof(sem_t), '\0');
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  void* shared = ::mmap(nullptr, sizeof(sem_t), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  auto* semaphore = static_cast<sem_t*>(shared);
  ::sem_init(semaphore, 1, 0);
  std::thread outside([&] {
    std::this_thread::sleep_for(2 * a_while);
    ::sem_post(semaphore);
  });
  AgentRuns runs({"waiting", "file", path});
  const ExperimentResult result = runs.run(AgentRuns::watching());
  outside.join();
  ::munmap(shared, sizeof(sem_t));
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass) << message_of(result);
}

// Through a file that the test's standard output is sent to: who sends the signal is no process of
// the test.
TEST(Quiescence, A_signal_may_come_from_outside) {
  const Folder folder;
  const std::string path = folder.file("pid");
  std::thread outside([&] {
    int pid = 0;
    while (!(std::ifstream(path) >> pid)) std::this_thread::sleep_for(milliseconds(5));
    std::this_thread::sleep_for(a_while);
    ::kill(pid, SIGUSR1);
  });
  AgentRuns runs({"/bin/sh", "-c", "exec " + agent_fixture("waiting") + " handler > " + path});
  const ExperimentResult result = runs.run(AgentRuns::watching());
  outside.join();
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass) << message_of(result);
}

class Unclear : public testing::TestWithParam<const char*> {};

TEST_P(Unclear, What_the_kernel_does_for_the_test_cannot_be_seen) {
  AgentRuns runs({"waiting", GetParam()});
  const ExperimentResult result = runs.run(AgentRuns::watching(), milliseconds(600));
  if (!result.process.output.text().empty()) GTEST_SKIP() << result.process.output.text();
  EXPECT_EQ(result.outcome.kind, OutcomeKind::timeout);
  EXPECT_TRUE(result.process.deadlock.empty()) << message_of(result);
}

INSTANTIATE_TEST_SUITE_P(Quiescence, Unclear, testing::Values("ring", "aio"),
                         [](const auto& info) { return std::string(info.param); });

// --- Holds ---

Intervention function(const std::string& name) {
  Intervention what;
  what.site.function = name;
  return what;
}

TEST(Quiescence, An_impossible_order_is_given_up_at_once_and_told) {
  AgentRuns runs({"waiting", "join_then_step"});
  runs.profile();
  const ExperimentResult result = runs.intervene(
      {watch(function("last_step")), hold(function("first_step"), 0, quiescence_bound)});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_LT(result.process.duration, soon);
  EXPECT_EQ(result.trace->interventions[1].fired, 1u);
  EXPECT_EQ(result.trace->interventions[1].impossible, 1u);
  EXPECT_EQ(result.trace->interventions[1].let_go, 0u);
}

TEST(Quiescence, Who_sleeps_may_still_come) {
  AgentRuns runs({"waiting", "sleeper"});
  runs.profile();
  const ExperimentResult result = runs.intervene(
      {watch(function("second_step")), hold(function("first_step"), 0, quiescence_bound)});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(result.trace->interventions[1].impossible, 0u);
  EXPECT_EQ(result.trace->interventions[1].let_go, 0u);
  EXPECT_GE(result.process.duration, a_while);
}

TEST(Quiescence, Several_held_threads_are_released_one_by_one) {
  AgentRuns runs({"waiting", "two"});
  runs.profile();
  const ExperimentResult result = runs.intervene(
      {watch(function("last_step")), hold(function("first_step"), 0, quiescence_bound),
       hold(function("second_step"), 0, quiescence_bound)});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_LT(result.process.duration, soon);
  EXPECT_EQ(result.trace->interventions[1].impossible, 1u);
  EXPECT_EQ(result.trace->interventions[2].impossible, 1u);
}

TEST(Quiescence, An_order_may_be_one_of_two_processes) {
  AgentRuns runs({"waiting", "between"});
  runs.profile();
  const ExperimentResult possible = runs.intervene(
      {watch(function("second_step")), hold(function("first_step"), 0, quiescence_bound)});
  EXPECT_EQ(possible.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(possible.trace->interventions[1].fired, 1u);
  EXPECT_EQ(possible.trace->interventions[1].impossible, 0u);
  const ExperimentResult impossible = runs.intervene(
      {watch(function("last_step")), hold(function("first_step"), 0, quiescence_bound)});
  EXPECT_EQ(impossible.outcome.kind, OutcomeKind::pass);
  EXPECT_LT(impossible.process.duration, soon);
  EXPECT_EQ(impossible.trace->interventions[1].impossible, 1u);
}

TEST(Quiescence, A_thread_that_has_ended_is_not_waited_for) {
  AgentRuns runs({"waiting", "ended"});
  const ExperimentResult profile = runs.profile();
  Intervention never = watch(function("last_step"));
  never.threads = Threads::named;
  never.thread = profile.trace->threads.at(1).name;
  const ExperimentResult result =
      runs.intervene({never, hold(function("first_step"), 0, quiescence_bound)});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_LT(result.process.duration, soon);
  EXPECT_EQ(result.trace->interventions[1].impossible, 1u);
}

TEST(Quiescence, The_end_of_main_is_a_site) {
  AgentRuns runs({"waiting", "return"});
  runs.profile();
  const ExperimentResult result =
      runs.intervene({watch(function("last_step")), hold(function("exit"), 0, quiescence_bound)});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(result.process.output.text(), "thread\n");
  EXPECT_EQ(result.trace->interventions[1].fired, 1u);
  EXPECT_EQ(result.trace->interventions[1].impossible, 0u);
  const ExperimentResult other =
      runs.intervene({watch(function("exit")), hold(function("first_step"), 0, quiescence_bound)});
  EXPECT_EQ(other.trace->interventions[0].fired, 1u);
}

TEST(Quiescence, A_thread_has_passed_an_instruction_when_it_comes_to_the_next) {
  AgentRuns runs({"waiting", "two"});
  runs.profile();
  Intervention passed = watch(function("second_step"));
  passed.site.offset = 4;  // after endbr64
  passed.position = Intervention::Position::after;
  const ExperimentResult result =
      runs.intervene({passed, hold(function("first_step"), 0, quiescence_bound)});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(result.trace->interventions[0].fired, 1u);
  EXPECT_EQ(result.trace->interventions[1].impossible, 0u);
}

}  // namespace
}  // namespace unflake
