#include "run/local_executor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include "util/files.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using End = ProcessResult::End;

const std::string misbehaving = UNFLAKE_FIXTURES "/misbehave";

std::shared_ptr<Test> test_of(std::vector<std::string> words) {
  auto test = std::make_shared<Test>();
  test->id = {"command", words.empty() ? "" : words[0]};
  test->command.argv = {misbehaving};
  test->command.argv.insert(test->command.argv.end(), words.begin(), words.end());
  return test;
}

class LocalExecutorTest : public testing::Test {
 protected:
  LocalExecutorTest() { remake({}); }

  void remake(LocalOptions options) {
    executor_.reset();
    options.grace = options.grace == LocalOptions{}.grace ? Duration(20ms) : options.grace;
    executor_ = std::move(*LocalExecutor::create(options, interrupts_));
  }

  ProcessResult run(std::vector<std::string> words, Duration timeout = 1min) {
    return run(Experiment{test_of(std::move(words)), {}, timeout, false});
  }
  ProcessResult run(const Experiment& experiment) {
    auto result = executor_->run(experiment);
    EXPECT_TRUE(result) << (result ? "" : to_string(result.error()));
    return result ? result->process : ProcessResult{};
  }

  // On a busy machine a short time-out may come before the test has got anywhere.
  ProcessResult run_until_it_says(const std::string& words, std::vector<std::string> manner) {
    for (Duration timeout = 50ms;; timeout *= 2) {
      ProcessResult result = run(manner, timeout);
      if (result.output.head.find(words) != std::string::npos) return result;
    }
  }

  static pid_t daemon_of(const ProcessResult& result) {
    pid_t pid = 0;
    std::sscanf(result.output.head.c_str(), "daemon %d", &pid);
    return pid;
  }
  static bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0; }

  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_;
};

TEST_F(LocalExecutorTest, Tells_exit_status_from_signal) {
  const ProcessResult exited = run({"exit", "7"});
  EXPECT_EQ(exited.end, End::exited);
  EXPECT_EQ(exited.code, 7);
  const ProcessResult signalled = run({"raise", std::to_string(SIGSEGV)});
  EXPECT_EQ(signalled.end, End::signalled);
  EXPECT_EQ(signalled.code, SIGSEGV);
}

TEST_F(LocalExecutorTest, Keeps_head_and_tail_of_endless_output) {
  LocalOptions options;
  options.limits = {1000, 500, false};
  remake(options);
  const ProcessResult result = run({"print", std::to_string(256 << 20)});
  EXPECT_EQ(result.output.total, (256u << 20) + 9);
  EXPECT_EQ(result.output.head, std::string(1000, 'x'));
  EXPECT_EQ(result.output.tail.size(), 500u);
  EXPECT_TRUE(result.output.tail.ends_with("x\nthe end\n"));
}

TEST_F(LocalExecutorTest, Ends_a_test_that_takes_too_long) {
  const ProcessResult result = run({"hang"}, 10ms);
  EXPECT_EQ(result.end, End::timed_out);
  EXPECT_EQ(result.code, SIGTERM);
  EXPECT_GE(result.duration, 10ms);
}

TEST_F(LocalExecutorTest, Kills_a_test_that_ignores_SIGTERM) {
  const ProcessResult result = run_until_it_says("ignoring", {"ignore-sigterm"});
  EXPECT_EQ(result.end, End::timed_out);
  EXPECT_EQ(result.code, SIGKILL);
}

TEST_F(LocalExecutorTest, Waits_for_a_test_that_closed_its_output) {
  EXPECT_EQ(run({"close-output"}).code, 3);
}

TEST_F(LocalExecutorTest, Kills_and_reaps_grandchildren_that_left_the_session) {
  for (const char* manner : {"daemonise", "daemonise-quietly"}) {
    const ProcessResult result = run({manner});
    EXPECT_EQ(result.end, End::exited);
    EXPECT_EQ(result.leftovers, 1) << manner;
    ASSERT_GT(daemon_of(result), 0);
    EXPECT_FALSE(is_alive(daemon_of(result)));
  }
  EXPECT_EQ(run({"exit", "0"}).leftovers, 0);
}

TEST_F(LocalExecutorTest, Kills_grandchildren_of_a_test_that_takes_too_long) {
  LocalOptions options;
  options.grace = 1min;  // the test itself obeys SIGTERM; its daemon is out of the signal's reach
  remake(options);
  const ProcessResult result = run_until_it_says("daemon", {"daemonise-and-hang"});
  EXPECT_EQ(result.end, End::timed_out);
  ASSERT_GT(daemon_of(result), 0);
  EXPECT_FALSE(is_alive(daemon_of(result)));
}

TEST_F(LocalExecutorTest, Lets_a_fixture_leave_a_server_running_until_the_executor_goes) {
  const ProcessResult setup = run(Experiment{test_of({"daemonise-quietly"}), {}, 1min, true});
  const pid_t daemon = daemon_of(setup);
  ASSERT_GT(daemon, 0);
  run({"exit", "0"});
  EXPECT_TRUE(is_alive(daemon));
  executor_.reset();
  EXPECT_FALSE(is_alive(daemon));
}

TEST_F(LocalExecutorTest, Reads_what_a_fixtures_server_writes_after_its_setup) {
  std::string folder = testing::TempDir() + "unflake-XXXXXX";
  ASSERT_TRUE(::mkdtemp(folder.data()));
  const std::string fifo = folder + "/done";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  run(Experiment{test_of({"daemonise-and-talk", fifo}), {}, 1min, true});
  const UniqueFd done(::open(fifo.c_str(), O_RDONLY));  // opens when the server does
  EXPECT_TRUE(done);
  std::filesystem::remove_all(folder);
}

TEST_F(LocalExecutorTest, Reports_what_cannot_be_started) {
  auto test = test_of({});
  test->command.argv = {"/nowhere/to/be/found"};
  const ProcessResult result = run(Experiment{test, {}, 1min, false});
  EXPECT_EQ(result.end, End::not_started);
  EXPECT_THAT(result.error, HasSubstr("/nowhere/to/be/found cannot be started: No such file"));
}

TEST_F(LocalExecutorTest, Survives_a_test_that_removes_its_working_directory) {
  std::string folder = testing::TempDir() + "unflake-XXXXXX";
  ASSERT_TRUE(::mkdtemp(folder.data()));
  auto test = test_of({"remove-working-directory"});
  test->command.cwd = folder;
  const Experiment experiment{test, {}, 1min, false};
  EXPECT_EQ(run(experiment).code, 0);
  const ProcessResult again = run(experiment);
  EXPECT_EQ(again.end, End::not_started);
  EXPECT_THAT(again.error, HasSubstr("the working directory " + folder + " cannot be entered"));
  EXPECT_EQ(run({"exit", "0"}).end, End::exited);
}

TEST_F(LocalExecutorTest, Starts_nothing_that_has_an_obstacle_or_lacks_a_file) {
  auto test = test_of({"exit", "0"});
  test->required_files = {misbehaving, "/no/such/file"};
  ProcessResult result = run(Experiment{test, {}, 1min, false});
  EXPECT_EQ(result.end, End::not_started);
  EXPECT_EQ(result.error, "its required file is missing: /no/such/file");
  EXPECT_TRUE(lacks_something(result));
  test->obstacle = "not built: x";
  EXPECT_EQ(run(Experiment{test, {}, 1min, false}).error, "not built: x");
  test->obstacle = "";
  test->required_files = {misbehaving};
  EXPECT_EQ(run(Experiment{test, {}, 1min, false}).end, End::exited);
}

TEST_F(LocalExecutorTest, Changes_the_environment_as_told) {
  auto test = test_of({"environment", "UNFLAKE_PROBE"});
  test->command.env = {{"UNFLAKE_PROBE", "one"}, {"UNFLAKE_PROBE", "two"}};
  EXPECT_EQ(run(Experiment{test, {}, 1min, false}).output.text(), "two\n");
  test->command.env.push_back({"UNFLAKE_PROBE", std::nullopt});
  EXPECT_EQ(run(Experiment{test, {}, 1min, false}).output.text(), "(unset)\n");
}

TEST_F(LocalExecutorTest, Gives_a_test_no_input_no_ignored_signals_and_no_stray_files) {
  EXPECT_EQ(run({"read-input"}).code, 0);
  EXPECT_EQ(run({"signal-mask"}).output.text(), "");
  EXPECT_EQ(run({"open-files"}).output.text(), "");
}

TEST_F(LocalExecutorTest, Captures_both_streams_in_order_and_apart_for_listings) {
  EXPECT_EQ(run({"two-streams"}).output.text(), "out\nerr\n");
  const ProcessResult apart = executor_->launch(test_of({"two-streams"})->command, 1min);
  EXPECT_EQ(apart.output.text(), "out\n");
  EXPECT_EQ(apart.errors.text(), "err\n");
}

TEST_F(LocalExecutorTest, Runs_as_many_at_once_as_there_are_slots) {
  LocalOptions options;
  options.jobs = 3;
  remake(options);
  for (int i = 0; i < 3; ++i)
    executor_->start({test_of({"exit", std::to_string(i)}), {}, 1min, false});
  EXPECT_EQ(executor_->free_slots(), 0u);
  std::multiset<int> codes;
  for (int i = 0; i < 3; ++i)
    codes.insert(std::get<Finished>(executor_->wait(std::nullopt)).result.process.code);
  EXPECT_EQ(codes, (std::multiset<int>{0, 1, 2}));
  EXPECT_EQ(executor_->free_slots(), 3u);
}

TEST_F(LocalExecutorTest, Cancels_what_runs_and_goes_on_afterwards) {
  executor_->start({test_of({"hang"}), {}, 1min, false});
  executor_->cancel_all();
  const auto cancelled = std::get<Finished>(executor_->wait(std::nullopt));
  EXPECT_EQ(cancelled.result.process.end, End::cancelled);
  executor_->cancel_all();
  EXPECT_EQ(run({"exit", "4"}).code, 4);
}

TEST_F(LocalExecutorTest, A_second_cancel_does_not_wait_for_the_grace_to_end) {
  LocalOptions options;
  options.grace = 1h;
  remake(options);
  executor_->start({test_of({"ignore-sigterm"}), {}, 1h, false});
  executor_->cancel_all();
  executor_->cancel_all();
  const auto cancelled = std::get<Finished>(executor_->wait(std::nullopt));
  EXPECT_EQ(cancelled.result.process.end, End::cancelled);
}

TEST_F(LocalExecutorTest, Wakes_up_for_signals) {
  executor_->start({test_of({"hang"}), {}, 1min, false});
  ::raise(SIGUSR1);
  EXPECT_TRUE(std::holds_alternative<StatusAsked>(executor_->wait(std::nullopt)));
  ::raise(SIGTERM);
  EXPECT_TRUE(std::holds_alternative<Stopped>(executor_->wait(std::nullopt)));
  EXPECT_EQ(interrupts_.stop_signal(), SIGTERM);
  EXPECT_TRUE(std::holds_alternative<Tick>(executor_->wait(Duration(1ms))));
}

TEST_F(LocalExecutorTest, Survives_a_test_that_kills_its_supervisor) {
  const ProcessResult result = run({"kill-parent"});
  EXPECT_EQ(result.end, End::not_started);
  EXPECT_THAT(result.error, HasSubstr("watches over the test was killed"));
  EXPECT_EQ(run({"exit", "4"}).code, 4);
}

TEST_F(LocalExecutorTest, Kills_a_leftover_whose_first_thread_has_ended) {
  const ProcessResult result = run({"leave-a-thread"});
  EXPECT_EQ(result.leftovers, 1);
  ASSERT_GT(daemon_of(result), 0);
  EXPECT_FALSE(is_alive(daemon_of(result)));
}

TEST_F(LocalExecutorTest, Runs_a_script_without_a_first_line_as_a_shell_would) {
  std::string script = testing::TempDir() + "unflake-XXXXXX";
  const int file = ::mkstemp(script.data());
  ASSERT_EQ(::write(file, "exit 6\n", 7), 7);
  ::fchmod(file, 0700);
  ::close(file);
  auto test = test_of({});
  test->command.argv = {script};
  EXPECT_EQ(run(Experiment{test, {}, 1min, false}).code, 6);
  ::unlink(script.c_str());
}

TEST_F(LocalExecutorTest, Queues_a_run_behind_another_and_cancels_both) {
  const Ticket first = executor_->start({test_of({"exit", "1"}), {}, 1min, false});
  EXPECT_EQ(executor_->queue_room(), 1u);
  const Ticket second = executor_->start({test_of({"hang"}), {}, 1min, false});
  EXPECT_EQ(executor_->queue_room(), 0u);
  const auto finished = std::get<Finished>(executor_->wait(std::nullopt));
  EXPECT_EQ(finished.ticket, first);
  EXPECT_EQ(finished.next, second);
  executor_->start({test_of({"exit", "2"}), {}, 1min, false});
  executor_->cancel_all();
  for (int i = 0; i < 2; ++i) {
    const auto cancelled = std::get<Finished>(executor_->wait(std::nullopt));
    EXPECT_EQ(cancelled.result.process.end, End::cancelled);
  }
  EXPECT_EQ(run({"exit", "3"}).code, 3);
}

TEST_F(LocalExecutorTest, Cancels_a_queued_run_that_was_too_large_to_be_sent_ahead) {
  executor_->start({test_of({"hang"}), {}, 1min, false});
  executor_->start({test_of({"hang", std::string(64 << 10, 'x')}), {}, 1min, false});
  executor_->cancel_all();
  for (int i = 0; i < 2; ++i) {
    const auto cancelled = std::get<Finished>(executor_->wait(std::nullopt));
    EXPECT_EQ(cancelled.result.process.end, End::cancelled);
  }
  EXPECT_EQ(run({"exit", "3"}).code, 3);
}

TEST_F(LocalExecutorTest, A_signal_during_a_listing_is_not_forgotten) {
  ::raise(SIGINT);
  ASSERT_EQ(interrupts_.next(), Interrupt::stop);  // as launch() would have read it
  EXPECT_EQ(executor_->launch(test_of({"hang"})->command, 1min).end, End::cancelled);
  EXPECT_TRUE(std::holds_alternative<Stopped>(executor_->wait(std::nullopt)));
}

// The controller dies in the middle of a run; its test and the test's daemon go with it.
TEST(Supervisor, Ends_the_test_when_unflake_is_killed) {
  std::string folder = testing::TempDir() + "unflake-XXXXXX";
  ASSERT_TRUE(::mkdtemp(folder.data()));
  const std::string fifo = folder + "/daemon";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  int says[2];
  ASSERT_EQ(::pipe(says), 0);
  const pid_t controller = ::fork();
  if (controller == 0) {
    auto supervisor = start_supervisor();
    Launch launch;
    launch.command.argv = {misbehaving, "daemonise-and-hang", fifo};
    supervisor->launch(encode(launch));
    if (::write(says[1], &supervisor->pid, sizeof(pid_t)) != sizeof(pid_t)) ::_exit(1);
    for (;;) ::pause();
  }
  pid_t supervisor = 0, daemon = 0;
  ASSERT_EQ(::read(says[0], &supervisor, sizeof supervisor), ssize_t{sizeof supervisor});
  const UniqueFd supervisor_handle = open_pidfd(supervisor);
  const UniqueFd reader(::open(fifo.c_str(), O_RDONLY));
  ASSERT_EQ(::read(reader.get(), &daemon, sizeof daemon), ssize_t{sizeof daemon});
  EXPECT_EQ(::kill(daemon, 0), 0);

  ::kill(controller, SIGKILL);
  ::waitpid(controller, nullptr, 0);
  pollfd gone{supervisor_handle.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&gone, 1, 60'000), 1);
  EXPECT_NE(::kill(daemon, 0), 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace unflake
