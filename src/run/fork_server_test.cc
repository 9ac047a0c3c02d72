#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "run/local_executor.h"
#include "support/temp_folder.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using End = ProcessResult::End;
namespace fs = std::filesystem;

const std::string constructor = UNFLAKE_FIXTURES "/constructor";
const std::string misbehave = UNFLAKE_FIXTURES "/misbehave";

class ForkServerTest : public testing::Test {
 protected:
  ForkServerTest() {
    LocalOptions options;
    options.grace = 20ms;
    executor_ = std::move(*LocalExecutor::create(options, interrupts_));
  }

  void choose(const std::string& what) { env_.push_back({"CONSTRUCTOR", what}); }

  ProcessResult run(std::vector<std::string> argv, Duration timeout = 1min) {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"command", argv[0]};
    test->command.argv = std::move(argv);
    test->command.env = env_;
    test->command.cwd = cwd_;
    Experiment experiment{test, {}, timeout, false, true};
    auto result = executor_->run(experiment);
    EXPECT_TRUE(result) << (result ? "" : to_string(result.error()));
    return result ? result->process : ProcessResult{};
  }

  std::shared_ptr<const Trace> trace_of(std::vector<std::string> argv) {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"command", argv[0]};
    test->command.argv = std::move(argv);
    Plan plan;
    plan.agent = plan.calls = true;
    auto result = executor_->run(Experiment{test, plan, 1min, false, true});
    EXPECT_TRUE(result && result->process.no_fork_server.empty());
    return result ? result->trace : nullptr;
  }

  // Of project code and of what it calls, in a run that a search would make of each test.
  std::set<std::string> functions_of(const std::string& test_name, bool callees = true) {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"handover", test_name};
    test->command.argv = {UNFLAKE_FIXTURES "/handover", "--gtest_filter=Handover." + test_name};
    Plan plan;
    plan.agent = plan.functions = true;
    plan.callees = callees;
    const auto result = executor_->run(Experiment{test, plan, 1min, false, true});
    EXPECT_TRUE(result && result->process.no_fork_server.empty());
    EXPECT_EQ(result->process.code, 0) << result->process.output.text();
    std::set<std::string> names;
    for (const TracedFunction& function : result->trace->functions) names.insert(function.name);
    EXPECT_TRUE(result->trace->problems.empty()) << result->trace->problems.front();
    for (const TracedProcess& process : result->trace->processes)
      EXPECT_TRUE(process.degraded.empty()) << process.degraded.front();
    return names;
  }

  std::string refusal_of(const std::string& choice) {
    choose(choice);
    const ProcessResult result = run({constructor});
    EXPECT_EQ(result.end, End::exited);
    return result.no_fork_server;
  }

  std::set<std::string> lines_over_runs(const std::vector<std::string>& argv, int runs) {
    std::set<std::string> lines;
    for (int i = 0; i < runs; ++i) {
      const std::string output = run(argv).output.head;
      for (const std::string_view line : split_lines(output)) lines.emplace(line);
    }
    return lines;
  }

  static std::vector<pid_t> children(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) +
                       "/children");
    std::vector<pid_t> found;
    for (pid_t child; file >> child;) found.push_back(child);
    return found;
  }
  // The supervisor's children: each server itself and the child that it has ready.
  // A server forks the next child while a run goes on, and may not be done when the run is.
  static std::vector<pid_t> processes() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::vector<pid_t> found = children(children(::getpid()).at(0));
    while (found.size() % 2 != 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
      found = children(children(::getpid()).at(0));
    }
    return found;
  }

  static size_t descriptors_of(pid_t pid) {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd"), {}));
  }

  static size_t memory_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
    size_t pages = 0;
    file >> pages;
    return pages;
  }

  std::vector<EnvChange> env_;
  std::string cwd_;
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_;
};

TEST_F(ForkServerTest, A_run_ends_as_a_spawned_one_does) {
  const ProcessResult exited = run({misbehave, "exit", "7"});
  EXPECT_EQ(exited.end, End::exited);
  EXPECT_EQ(exited.code, 7);
  const ProcessResult signalled = run({misbehave, "raise", std::to_string(SIGSEGV)});
  EXPECT_EQ(signalled.end, End::signalled);
  EXPECT_EQ(signalled.code, SIGSEGV);
  EXPECT_EQ(exited.no_fork_server, "");
  EXPECT_THAT(processes(), SizeIs(2));
}

TEST_F(ForkServerTest, A_run_that_takes_too_long_is_ended) {
  const ProcessResult result = run({misbehave, "hang"}, 10ms);
  EXPECT_EQ(result.end, End::timed_out);
  EXPECT_EQ(result.code, SIGTERM);
}

TEST_F(ForkServerTest, What_a_run_leaves_behind_is_ended_and_the_server_is_not) {
  const ProcessResult result = run({misbehave, "daemonise"});
  EXPECT_EQ(result.leftovers, 1);
  EXPECT_THAT(processes(), SizeIs(2));
  EXPECT_EQ(run({misbehave, "exit", "0"}).leftovers, 0);
}

TEST_F(ForkServerTest, A_run_finds_no_descriptor_no_input_and_no_changed_signal) {
  EXPECT_EQ(run({misbehave, "open-files"}).output.head, "");
  EXPECT_EQ(run({misbehave, "read-input"}).code, 0);
  EXPECT_EQ(run({misbehave, "signal-mask"}).output.head, "");
}

TEST_F(ForkServerTest, A_run_is_a_process_and_a_session_of_its_own) {
  const ProcessResult one = run({constructor, "self"}), other = run({constructor, "self"});
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(one.output.head, HasSubstr("leader 1"));
  EXPECT_NE(one.output.head, other.output.head);
}

TEST_F(ForkServerTest, The_environment_does_not_show_the_agent) {
  for (const char* name :
       {"LD_PRELOAD", "LD_BIND_NOW", "ASAN_OPTIONS", "UNFLAKE_FORK_SERVER", "UNFLAKE_AGENT"}) {
    env_ = {{name, std::nullopt}};
    EXPECT_EQ(run({constructor, "variable", name}).output.head, "(unset)\n") << name;
  }
}

TEST_F(ForkServerTest, Each_run_has_its_own_arguments) {
  run({constructor});
  EXPECT_THAT(run({constructor, "command line", "a", ""}).output.head,
              HasSubstr("constructor|command line|a||"));
}

TEST_F(ForkServerTest, What_a_constructor_does_to_the_process_stays_done) {
  choose("setenv");
  EXPECT_EQ(run({constructor, "variable", "SET_BEFORE_MAIN"}).output.head, "yes\n");
  choose("blocked signal");
  EXPECT_EQ(run({constructor, "blocked"}).output.head, "blocked 1\n");
  choose("buffered output");
  EXPECT_EQ(run({constructor}).output.head, "early\n");
}

TEST_F(ForkServerTest, Fork_handlers_run_once_in_each_child) {
  choose("fork handler");
  EXPECT_EQ(run({constructor, "forks"}).output.head, "forks 1\n");
  EXPECT_EQ(run({constructor, "forks"}).output.head, "forks 1\n");
}

TEST_F(ForkServerTest, Random_bytes_and_addresses_differ_from_run_to_run) {
  const auto lines = lines_over_runs({constructor, "random"}, 8);
  for (const char* what : {"bytes ", "stack ", "heap ", "mapping ", "device "})
    EXPECT_GT(
        std::ranges::count_if(lines, [&](const auto& line) { return line.starts_with(what); }), 1)
        << what;
}

TEST_F(ForkServerTest, An_unseeded_generator_begins_as_in_a_new_process) {
  EXPECT_EQ(lines_over_runs({constructor, "rand"}, 3), std::set<std::string>{"1804289383"});
}

TEST_F(ForkServerTest, Each_run_writes_its_own_trace) {
  for (int i = 0; i < 2; ++i) {
    const auto trace = trace_of({misbehave, "daemonise"});
    ASSERT_TRUE(trace);
    EXPECT_THAT(trace->processes, SizeIs(3));
    EXPECT_THAT(trace->sites, testing::Not(IsEmpty()));
  }
  EXPECT_THAT(processes(), SizeIs(2));
}

TEST_F(ForkServerTest, A_library_that_is_opened_may_lack_what_it_does_not_call) {
  const ProcessResult result = run({UNFLAKE_FIXTURES "/opens_library"});
  EXPECT_EQ(result.output.head, "opened\n");
  EXPECT_EQ(result.no_fork_server, "");
  EXPECT_THAT(processes(), SizeIs(2));
}

TEST_F(ForkServerTest, Another_environment_gets_another_server) {
  env_ = {{"FIRST", "1"}};
  EXPECT_EQ(run({misbehave, "environment", "FIRST"}).output.head, "1\n");
  env_ = {{"FIRST", "2"}};
  EXPECT_EQ(run({misbehave, "environment", "FIRST"}).output.head, "2\n");
  EXPECT_THAT(processes(), SizeIs(2 * 2));
}

TEST_F(ForkServerTest, The_number_of_servers_is_bounded) {
  for (int i = 0; i < 20; ++i) {
    env_ = {{"NUMBER", std::to_string(i)}};
    EXPECT_EQ(run({misbehave, "environment", "NUMBER"}).output.head, std::to_string(i) + "\n");
  }
  EXPECT_THAT(processes(), SizeIs(8 * 2));
}

TEST_F(ForkServerTest, A_killed_server_is_replaced) {
  run({misbehave, "exit", "0"});
  const pid_t first = processes().at(0);
  ::kill(first, SIGKILL);
  EXPECT_EQ(run({misbehave, "exit", "5"}).code, 5);  // in the child that was ready
  EXPECT_EQ(run({misbehave, "exit", "6"}).code, 6);
  ASSERT_THAT(processes(), SizeIs(2));
  EXPECT_NE(processes()[0], first);
}

TEST_F(ForkServerTest, A_killed_child_in_stock_is_replaced) {
  run({misbehave, "exit", "0"});
  ::kill(processes().at(1), SIGKILL);
  EXPECT_EQ(run({misbehave, "exit", "5"}).code, 5);
  EXPECT_THAT(processes(), SizeIs(2));
}

TEST_F(ForkServerTest, A_changed_program_gets_a_new_server) {
  const TempFolder folder;
  const std::string program = folder.file("program");
  fs::copy_file(misbehave, program);
  EXPECT_EQ(run({program, "exit", "5"}).code, 5);
  fs::remove(program);
  fs::copy_file(constructor, program);
  EXPECT_EQ(run({program, "exit", "5"}).code, 0);
}

TEST_F(ForkServerTest, A_folder_that_is_gone_is_told_as_without_a_server) {
  const TempFolder folder;
  cwd_ = folder.file("work");
  fs::create_directory(cwd_);
  EXPECT_EQ(run({misbehave, "remove-working-directory"}).code, 0);
  const ProcessResult result = run({misbehave, "exit", "0"});
  EXPECT_EQ(result.end, End::not_started);
  EXPECT_THAT(result.error, HasSubstr("working directory"));
}

TEST_F(ForkServerTest, Many_runs_leave_no_process_no_descriptor_and_no_memory_behind) {
  run({misbehave, "exit", "0"});
  const pid_t supervisor = children(::getpid()).at(0), server = processes().at(0);
  const size_t open_in_supervisor = descriptors_of(supervisor), open = descriptors_of(server);
  const size_t memory = memory_of(server);
  for (int i = 0; i < 200; ++i) run({misbehave, "exit", "0"});
  ASSERT_THAT(processes(), SizeIs(2));
  EXPECT_EQ(processes()[0], server);
  constexpr size_t busy = 20;  // while something goes on there are some more, but not one per run
  EXPECT_LT(descriptors_of(supervisor), open_in_supervisor + busy);
  EXPECT_LT(descriptors_of(server), open + busy);
  EXPECT_LT(memory_of(server), memory + 100);
  executor_.reset();
  EXPECT_NE(::kill(server, 0), 0);
}

TEST_F(ForkServerTest, A_long_command_line_arrives) {
  const std::string word(100'000, 'x');
  const ProcessResult result = run({constructor, "command line", word});
  EXPECT_EQ(result.no_fork_server, "");
  run({constructor});
  EXPECT_EQ(run({misbehave, "exit", "4", word, word, word, word}).code, 4);
}

TEST_F(ForkServerTest, A_thread_before_main_is_refused) {
  EXPECT_EQ(refusal_of("thread"), "a static constructor starts a thread");
}
TEST_F(ForkServerTest, A_process_before_main_is_refused) {
  EXPECT_EQ(refusal_of("process"), "a static constructor starts a process");
}
TEST_F(ForkServerTest, Open_files_before_main_are_refused) {
  EXPECT_THAT(refusal_of("socket"), HasSubstr("a static constructor leaves socket:"));
  EXPECT_EQ(refusal_of("file"), "a static constructor leaves /dev/zero open");
}
TEST_F(ForkServerTest, Timers_before_main_are_refused) {
  EXPECT_EQ(refusal_of("timer"), "a static constructor starts a timer");
  EXPECT_EQ(refusal_of("posix timer"), "a static constructor starts a timer");
}
TEST_F(ForkServerTest, Shared_memory_before_main_is_refused) {
  EXPECT_EQ(refusal_of("shared memory"), "a static constructor shares writable memory");
}
TEST_F(ForkServerTest, Output_before_main_is_refused_and_each_run_has_it) {
  EXPECT_THAT(refusal_of("output"), HasSubstr("writes output"));
  EXPECT_EQ(run({constructor}).output.head, "early\n");
}
TEST_F(ForkServerTest, A_redirection_before_main_is_refused) {
  const TempFolder folder;
  cwd_ = folder.path();
  EXPECT_THAT(refusal_of("redirect"), HasSubstr("redirect"));
}
TEST_F(ForkServerTest, Random_numbers_before_main_are_refused) {
  EXPECT_THAT(refusal_of("random"), HasSubstr("random numbers"));
}
TEST_F(ForkServerTest, A_program_that_never_comes_to_its_main_is_refused) {
  EXPECT_EQ(refusal_of("exit"), "it ended before main");
  EXPECT_EQ(run({constructor}).code, 3);
}
TEST_F(ForkServerTest, A_program_that_takes_too_long_to_its_main_is_refused) {
  choose("hang");
  const ProcessResult result = run({constructor}, 100ms);
  EXPECT_EQ(result.no_fork_server, "it did not reach main within 100 ms");
  EXPECT_EQ(result.end, End::timed_out);
}
TEST_F(ForkServerTest, A_word_to_stop_is_heard_while_a_server_starts) {
  auto test = std::make_shared<unflake::Test>();
  test->command.argv = {constructor};
  test->command.env = {{"CONSTRUCTOR", "hang"}};
  executor_->start(Experiment{test, {}, 0s, false, true});
  executor_->cancel_all();
  const Wakeup wakeup = executor_->wait(std::nullopt);
  ASSERT_TRUE(std::holds_alternative<Finished>(wakeup));
  EXPECT_EQ(std::get<Finished>(wakeup).result.process.end, End::cancelled);
}
TEST_F(ForkServerTest, Programs_without_a_loader_are_refused) {
  EXPECT_THAT(run({UNFLAKE_FIXTURES "/static_program"}).no_fork_server, HasSubstr("statically"));
  EXPECT_EQ(run({UNFLAKE_FIXTURES "/script.sh"}).no_fork_server, "it is a script");
}
TEST_F(ForkServerTest, A_refusal_is_told_once) {
  EXPECT_NE(refusal_of("thread"), "");
  EXPECT_EQ(run({constructor}).no_fork_server, "");
  EXPECT_THAT(processes(), IsEmpty());
}

TEST_F(ForkServerTest, Traces_what_each_test_executes_with_the_probes_of_its_server) {
  for (int round = 0; round < 3; ++round) {
    const auto pool = functions_of("Uses_a_pool"), waits = functions_of("Waits_for_it");
    EXPECT_TRUE(pool.contains("(anonymous namespace)::Box::look"));
    EXPECT_FALSE(pool.contains("(anonymous namespace)::Box::wait"));
    EXPECT_TRUE(waits.contains("(anonymous namespace)::Box::wait"));
    EXPECT_FALSE(waits.contains("(anonymous namespace)::Box::look"));
    EXPECT_TRUE(waits.contains("std::thread::join"));
  }
}

// The framework asks for the time and the environment in every test, and these do not.
TEST_F(ForkServerTest, What_only_the_framework_calls_is_not_the_tests) {
  const auto names = functions_of("Waits_for_it");
  EXPECT_FALSE(names.contains("getenv"));
  EXPECT_FALSE(names.contains("std::chrono::_V2::system_clock::now"));
  EXPECT_FALSE(names.contains("std::chrono::_V2::steady_clock::now"));
}

TEST_F(ForkServerTest, Another_plan_has_its_own_probes) {
  EXPECT_TRUE(functions_of("Waits_for_it").contains("std::thread::join"));
  EXPECT_FALSE(functions_of("Waits_for_it", false).contains("std::thread::join"));
  EXPECT_TRUE(functions_of("Waits_for_it").contains("std::thread::join"));
  EXPECT_THAT(run({UNFLAKE_FIXTURES "/handover", "--gtest_filter=Handover.Waits_for_it"}).code, 0);
}

}  // namespace
}  // namespace unflake
