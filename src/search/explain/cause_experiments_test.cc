#include "search/explain/cause_experiments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/failing_program.h"
#include "trace/names.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::late_thread;
using simulated::Program;
using simulated::Script;
using simulated::sleeping_test;

// An async wait that sleeps there.
SuspectedCauses suspecting_sleep(const std::string& site, Duration asked) {
  SuspectedCauses suspected;
  suspected.async_wait = true;
  suspected.wait = SuspectedWait{*parse_site(site), "", asked, 1, true};
  return suspected;
}

CauseExperiments ask(const Program& program, const Intervention& late, int failing_line,
                     const SuspectedCauses& suspected) {
  MockExecutor executor = simulated::executor_of(program);
  EventStream events;
  TrialRunner runner(executor, simulated::test_of(program), events, 10min);
  RepairRuns runs(runner, simulated::failing_test(program, {late}, failing_line));
  const DecisivePair pair = find_decisive_pair(runs);
  EXPECT_TRUE(pair.critical);
  return ask_for_cause(runs, pair, suspected);
}

TEST(CauseExperiments, Show_that_a_sleep_is_relied_upon) {
  const Program program = sleeping_test();
  const CauseExperiments found =
      ask(program, late_thread("work.cc:20:nanosleep", "work.cc:10#1", 200ms), 13,
          suspecting_sleep("work.cc:11:nanosleep", 50ms));
  EXPECT_TRUE(CauseFacts::never(found.facts.late_as_a_whole));
  EXPECT_TRUE(CauseFacts::holds(found.facts.longer_wait));
  EXPECT_TRUE(CauseFacts::holds(found.facts.shorter_wait));
  EXPECT_FALSE(found.tried.empty());
}

// Whoever is first loads the values; what is said to be loaded is not there at once.
TEST(CauseExperiments, Tell_what_is_half_done_from_what_is_not_there_yet) {
  Program program;
  Script& worker = program.thread();
  worker.enter("work")
      .call("work.cc:19", "getrandom")
      .set("claimed")
      .call("work.cc:20", "getrandom")
      .line("work.cc:21")
      .set("loaded")
      .line("work.cc:22");
  program.main()
      .enter("test")
      .create("work.cc:10", worker)
      .sleep("work.cc:11", 50ms)
      .line("work.cc:12")
      .check("work.cc:13", [](const simulated::State& state) {
        return !state.is_set("claimed") || state.is_set("loaded");
      });
  const CauseExperiments found =
      ask(program, late_thread("work.cc:20:getrandom", "work.cc:10#1", 200ms), 13,
          suspecting_sleep("work.cc:11:nanosleep", 50ms));
  EXPECT_TRUE(CauseFacts::holds(found.facts.late_as_a_whole));
}

TEST(CauseExperiments, Ask_nothing_of_what_is_not_suspected) {
  const Program program = sleeping_test();
  const CauseExperiments found = ask(
      program, late_thread("work.cc:20:nanosleep", "work.cc:10#1", 200ms), 13, SuspectedCauses{});
  EXPECT_EQ(found.facts.late_as_a_whole.runs + found.facts.longer_wait.runs +
                found.facts.waiting_first.runs + found.facts.after_its_end.runs,
            0);
  EXPECT_TRUE(found.tried.empty());
}

TEST(CauseExperiments, Show_whether_it_is_enough_to_come_after_the_end_of_the_late_thread) {
  const Program program = sleeping_test();
  SuspectedCauses suspected;
  suspected.ordering = true;
  const CauseExperiments found =
      ask(program, late_thread("work.cc:20:nanosleep", "work.cc:10#1", 200ms), 13, suspected);
  EXPECT_TRUE(CauseFacts::holds(found.facts.after_its_end));
}

// A gate that is opened once, for all that wait there: who comes later waits in vain.
Program gate_test() {
  Program program;
  Script& visitor = program.thread();
  visitor.enter("visit")
      .line("gate.cc:20")
      .lock("gate.cc:21", "mutex")
      .wait_for("gate.cc:22", "open", 1s, {}, "mutex")
      .unlock("gate.cc:23", "mutex");
  Script& main = program.main();
  main.enter("test");
  for (int i = 0; i < 3; ++i) main.create("gate.cc:10", visitor);
  main.sleep("gate.cc:11", 50ms)
      .lock("gate.cc:12", "mutex")
      .broadcast("gate.cc:13", "open")
      .unlock("gate.cc:14", "mutex")
      .join("gate.cc:15", visitor)
      .line("gate.cc:16")
      .check("gate.cc:17",
             [](const simulated::State& state) { return !state.is_set("open timed out"); });
  return program;
}

size_t call_at(const Trace& trace, const std::string& site, const std::string& thread) {
  const auto found = std::ranges::find_if(trace.calls, [&](const TracedCall& call) {
    return !call.is_intervention && to_string(trace.sites[call.site].name) == site &&
           trace.threads[call.thread].name.text == thread;
  });
  EXPECT_NE(found, trace.calls.end()) << site;
  return static_cast<size_t>(found - trace.calls.begin());
}

TEST(CauseExperiments, Hold_a_wake_up_back_until_all_of_a_pool_wait_for_it) {
  const Program program = gate_test();
  Intervention late = late_thread("gate.cc:21:pthread_mutex_lock", "gate.cc:10#1", 200ms);
  late.threads = Intervention::Threads::in_class;
  MockExecutor executor = simulated::executor_of(program);
  EventStream events;
  TrialRunner runner(executor, simulated::test_of(program), events, 10min);
  RepairRuns runs(runner, simulated::failing_test(program, {late}, 17));
  DecisivePair pair = find_decisive_pair(runs);
  ASSERT_TRUE(pair.critical);
  EXPECT_EQ(pair.kept, (Count{3, 3}));
  EXPECT_EQ(pair.reversed, (Count{3, 3}));
  pair.hand_over.reset();  // which would be enough
  SuspectedCauses suspected;
  suspected.lost_wakeup = true;
  const Trace& failing = *pair.failing->trace;
  suspected.wake_up =
      MissedWakeUp{call_at(failing, "gate.cc:22:pthread_cond_clockwait", "gate.cc:10#1"),
                   call_at(failing, "gate.cc:13:pthread_cond_broadcast", "main")};
  EXPECT_TRUE(CauseFacts::holds(ask_for_cause(runs, pair, suspected).facts.waiting_first));
}

}  // namespace
}  // namespace unflake
