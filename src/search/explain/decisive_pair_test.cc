#include "search/explain/decisive_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/failing_program.h"
#include "support/trace_builder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::late_thread;
using simulated::Program;
using simulated::Script;
using simulated::sleeping_test;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;

struct PairSearch {
  PairSearch(const Program& program, std::vector<Intervention> late, int failing_line,
             Duration budget = 10min)
      : executor(simulated::executor_of(program)),
        runner(executor, simulated::test_of(program), events, budget),
        runs(runner, simulated::failing_test(program, std::move(late), failing_line)) {}

  DecisivePair operator()() { return find_decisive_pair(runs); }

  MockExecutor executor;
  EventStream events;
  TrialRunner runner;
  RepairRuns runs;
};

TEST(DecisivePair, Is_shown_in_both_directions) {
  const Program program = sleeping_test();
  PairSearch search(program, {late_thread("work.cc:20:nanosleep", "work.cc:10#1", 200ms)}, 13);
  const DecisivePair found = search();
  ASSERT_TRUE(found.critical);
  EXPECT_EQ(to_string(found.critical->step.site), "work.cc:22");
  ASSERT_TRUE(found.barrier);
  EXPECT_THAT(to_string(found.barrier->site), AnyOf("work.cc:12", "work.cc:13"));
  EXPECT_EQ(found.kept.hits, 3);
  EXPECT_EQ(found.kept.runs, 3);
  EXPECT_EQ(found.reversed.hits, 3);
  EXPECT_EQ(found.reversed.runs, 3);
}

TEST(DecisivePair, Is_reversed_with_every_thread_that_has_to_be_late) {
  Program program;
  for (const char* name : {"one", "other"}) {
    const std::string line = name == std::string("one") ? "work.cc:2" : "work.cc:3";
    Script& worker = program.thread();
    worker.enter(name).sleep(line + "0", 5ms).line(line + "1").set(name).line(line + "2");
    program.main().enter("test").create(line == "work.cc:2" ? "work.cc:10" : "work.cc:11", worker);
  }
  program.main()
      .sleep("work.cc:12", 50ms)
      .line("work.cc:13")
      .check("work.cc:14", [](const simulated::State& state) {
        return state.is_set("one") || state.is_set("other");
      });
  PairSearch search(program,
                    {late_thread("work.cc:20:nanosleep", "work.cc:10#1", 200ms),
                     late_thread("work.cc:30:nanosleep", "work.cc:11#1", 200ms)},
                    14);
  const DecisivePair found = search();
  ASSERT_TRUE(found.critical);
  ASSERT_TRUE(found.barrier);
  EXPECT_EQ(found.kept, (Count{3, 3}));
  EXPECT_EQ(found.reversed, (Count{3, 3}));
}

// The worker puts three things under a lock, which the test takes to look.
Program locking_test() {
  Program program;
  Script& worker = program.thread();
  worker.enter("work");
  for (const char* thing : {"one", "two", "three"})
    worker.line("work.cc:20")
        .lock("work.cc:21", "mutex")
        .line("work.cc:22")
        .set(thing)
        .line("work.cc:23")
        .unlock("work.cc:24", "mutex");
  worker.line("work.cc:25");
  program.main()
      .enter("test")
      .create("work.cc:10", worker)
      .sleep("work.cc:11", 50ms)
      .lock("work.cc:12", "mutex")
      .line("work.cc:13")
      .check("work.cc:14", simulated::is_set("three"))
      .unlock("work.cc:15", "mutex");
  return program;
}

// Who is late with the lock keeps the test waiting, so that steps that fail and steps that pass
// take turns.
TEST(DecisivePair, Is_found_among_steps_without_a_lock) {
  const Program program = locking_test();
  PairSearch search(program, {late_thread("work.cc:21:pthread_mutex_lock", "work.cc:10#1", 200ms)},
                    14);
  const DecisivePair found = search();
  ASSERT_TRUE(found.critical);
  EXPECT_EQ(to_string(found.critical->step.site), "work.cc:21:pthread_mutex_lock");
  EXPECT_EQ(found.critical->step.visit, 3U);
  ASSERT_TRUE(found.barrier);
  EXPECT_EQ(to_string(found.barrier->site), "work.cc:12:pthread_mutex_lock");
  EXPECT_EQ(found.kept, (Count{3, 3}));
  EXPECT_EQ(found.reversed, (Count{3, 3}));
}

// Main gives the worker something to do, and looks after a time that others set.
TEST(DecisivePair, Is_that_of_the_thread_that_is_overtaken_by_the_late_one) {
  Program program;
  Script& worker = program.thread();
  Script& clock = program.thread();
  worker.enter("work").wait("work.cc:20", "begun", simulated::is_set("begun")).work(1ms);
  worker.line("work.cc:21").set("done").line("work.cc:22");
  clock.sleep("work.cc:30", 100ms).set("asked").broadcast("work.cc:31", "asked");
  program.main()
      .enter("test")
      .create("work.cc:8", clock)
      .create("work.cc:9", worker)
      .line("work.cc:10")
      .set("begun")
      .broadcast("work.cc:11", "begun")
      .line("work.cc:12")
      .wait("work.cc:13", "asked", simulated::is_set("asked"))
      .line("work.cc:14")
      .check("work.cc:15", simulated::is_set("done"));
  PairSearch search(program, {late_thread("work.cc:10", "main", 200ms)}, 15);
  const DecisivePair found = search();
  ASSERT_TRUE(found.critical);
  EXPECT_EQ(found.critical->step.thread.text, "work.cc:9#1");
  EXPECT_EQ(to_string(found.critical->step.site), "work.cc:21");
  ASSERT_TRUE(found.barrier);
  EXPECT_EQ(found.barrier->thread.text, "main");
  EXPECT_EQ(found.kept, (Count{3, 3}));
  EXPECT_EQ(found.reversed, (Count{3, 3}));
  EXPECT_TRUE(found.late_there);
}

// The registry goes before the thread that uses it is told to stop.
TEST(DecisivePair, Of_one_thread_alone_is_a_gap_that_nobody_may_come_into) {
  Program program;
  Script& user = program.thread();
  for (int use = 0; use < 4; ++use)
    user.sleep("work.cc:20", 60ms).check("work.cc:21", [](const simulated::State& state) {
      return !state.is_set("gone") || state.is_set("stopped");
    });
  program.main()
      .enter("test")
      .create("work.cc:10", user)
      .sleep("work.cc:11", 80ms)
      .line("work.cc:12")
      .set("gone")
      .work(1ms)
      .call("work.cc:13", "getrandom")
      .set("stopped")
      .line("work.cc:14")
      .join("work.cc:15", user);
  PairSearch search(program, {late_thread("work.cc:13:getrandom", "main", 50ms)}, 21);
  const DecisivePair found = search();
  ASSERT_TRUE(found.critical) << testing::PrintToString(found.tried);
  EXPECT_EQ(to_string(found.critical->step.site), "work.cc:13:getrandom");
  EXPECT_FALSE(found.barrier);
  ASSERT_TRUE(found.gap_from);
  EXPECT_EQ(to_string(found.gap_from->site), "work.cc:12");
}

TEST(DecisivePair, Is_not_looked_for_when_nobody_is_late) {
  const Program program = sleeping_test();
  PairSearch search(program, {}, 13);
  const DecisivePair found = search();
  EXPECT_FALSE(found.critical);
  EXPECT_EQ(found.kept.runs, 0);
  EXPECT_FALSE(found.tried.empty());
}

TEST(DecisivePair, Is_not_said_to_be_missing_when_time_was) {
  const Program program = sleeping_test();
  PairSearch search(program, {late_thread("work.cc:20:nanosleep", "work.cc:10#1", 200ms)}, 13, 1us);
  EXPECT_THAT(search().tried, Contains(HasSubstr("no time was left")));
}

TEST(DecisivePair, A_thread_that_holds_a_lock_is_made_to_wait_where_it_took_it) {
  TraceBuilder builder;
  builder.thread("main")
      .call("main", "a.cc:1:nanosleep", 0, 1)
      .call("main", "a.cc:2:pthread_mutex_lock", 2, 2.1, 0xa)
      .call("main", "a.cc:3:write", 3, 3.1)
      .call("main", "a.cc:4:pthread_mutex_unlock", 4, 4.1, 0xa)
      .call("main", "a.cc:5:write", 5, 5.1);
  const Trace trace = builder.trace();
  std::vector<std::string> sites;
  for (const ThreadStep& step :
       steps_without_lock(trace, steps_of(trace, 0, RepairLines({&trace}, nullptr))))
    sites.push_back(to_string(step.site));
  EXPECT_THAT(
      sites, testing::ElementsAre("a.cc:1:nanosleep", "a.cc:2:pthread_mutex_lock", "a.cc:5:write"));
}

// A waiter that does not look, and a signal for which nobody may wait yet.
Program signalling_test() {
  Program program;
  Script& waiter = program.thread();
  waiter.enter("wait")
      .line("work.cc:20")
      .lock("work.cc:21", "mutex")
      .wait_for("work.cc:22", "bell", 300ms)
      .set("heard")
      .unlock("work.cc:24", "mutex")
      .line("work.cc:25");
  program.main()
      .enter("test")
      .create("work.cc:10", waiter)
      .sleep("work.cc:11", 50ms)
      .lock("work.cc:12", "mutex")
      .line("work.cc:13")
      .signal("work.cc:14", "bell")
      .unlock("work.cc:15", "mutex")
      .sleep("work.cc:16", 50ms)
      .line("work.cc:17")
      .check("work.cc:18", simulated::is_set("heard"));
  return program;
}

TEST(DecisivePair, Under_a_lock_is_what_is_waited_for_and_signalled) {
  const Program program = signalling_test();
  PairSearch search(program, {late_thread("work.cc:21:pthread_mutex_lock", "work.cc:10#1", 80ms)},
                    18);
  const DecisivePair found = search();
  ASSERT_TRUE(found.critical);
  EXPECT_EQ(to_string(found.critical->step.site), "work.cc:21:pthread_mutex_lock");
  ASSERT_TRUE(found.hand_over);
  const auto site_of = [](const ExperimentResult& run, size_t call) {
    return to_string(run.trace->sites[run.trace->calls[call].site].name);
  };
  EXPECT_EQ(site_of(*found.passing, found.hand_over->first), "work.cc:22:pthread_cond_clockwait");
  EXPECT_EQ(site_of(*found.failing, found.hand_over->second), "work.cc:14:pthread_cond_signal");
}

TEST(Steps, After_a_wait_a_thread_is_late_without_its_lock) {
  TraceBuilder builder;
  builder.thread("main")
      .call("main", "a.cc:1:pthread_mutex_lock", 0, 1, 0xa)
      .call("main", "a.cc:2:pthread_cond_wait", 2, 3, 0xb)
      .call("main", "a.cc:3:write", 4, 4.1)
      .call("main", "a.cc:4:write", 5, 5.1)
      .call("main", "a.cc:5:pthread_mutex_unlock", 6, 6.1, 0xa);
  const Trace trace = builder.trace();
  const auto steps = steps_without_lock(trace, steps_of(trace, 0, RepairLines({&trace}, nullptr)));
  ASSERT_EQ(steps.size(), 2U);
  ASSERT_TRUE(steps[1].woken_from);
  EXPECT_EQ(to_string(steps[1].site), "a.cc:3:write");
  const Intervention late = late_before({}, steps[1]);
  EXPECT_EQ(to_string(late.site), "a.cc:2:pthread_cond_wait");
  EXPECT_EQ(late.position, Intervention::Position::after);
}

TEST(Steps, Go_on_in_the_program_that_took_the_place_of_another) {
  TraceBuilder builder;
  builder.thread("main")
      .thread("a.cc:1#1", "main")
      .call("main", "a.cc:1:fork", 0, 1)
      .call("a.cc:1#1", "a.cc:2:execve", 2, 3)
      .process()
      .thread("server!main")
      .call("server!main", "server!b.cc:1:listen", 4, 5);
  Trace trace = builder.trace();
  trace.threads[2].tid = trace.threads[1].tid;
  trace.processes[1].pid = trace.processes[0].pid;
  std::vector<std::string> sites;
  for (const ThreadStep& step : steps_of(trace, 1, RepairLines({&trace}, nullptr)))
    sites.push_back(short_name(step));
  EXPECT_THAT(sites,
              testing::ElementsAre("a.cc:2:execve@a.cc:1#1", "server!b.cc:1:listen@server!main"));
}

// A library that has a function of its own for the time, and a loop.
TEST(Steps, Are_told_by_who_comes_there_and_which_time) {
  TraceBuilder builder;
  builder.thread("main");
  for (const int line : {20, 22, 22}) {
    const double at = static_cast<double>(line);
    builder.call("main", "clock.c:7:clock_gettime", at, at + 0.1).in("clock_gettime", "", 0);
    builder.called_at("lib_now", "/src/clock.c", 7).called_at("test", "/src/desk.c", line);
  }
  Trace trace = builder.trace();
  for (TracedSite& site : trace.sites) site.group = "clock";
  std::vector<std::string> words;
  for (const ThreadStep& step : steps_of(trace, 0, RepairLines({}, nullptr)))
    words.push_back(step_words(trace, step));
  EXPECT_THAT(words, testing::ElementsAre("clock_gettime at desk.c:20",
                                          "clock_gettime at desk.c:22 (time 1 of 2)",
                                          "clock_gettime at desk.c:22 (time 2 of 2)"));
}

// A test that starts its own program again.
TEST(Steps, Threads_of_one_name_in_two_processes_are_two) {
  TraceBuilder builder;
  builder.thread("main").call("main", "a.cc:1:fork", 0, 1).process().thread("main");
  const Trace trace = builder.trace();
  EXPECT_EQ(thread_named(trace, "main"), 0U);
  EXPECT_EQ(thread_named(trace, "main", 1), 1U);
  EXPECT_EQ(thread_named(trace, "main", 2), 1U);
  EXPECT_EQ(thread_named(trace, "a.cc:1#1"), no_index);
  EXPECT_EQ(namesake_number(trace, 0), 0U);
  EXPECT_EQ(namesake_number(trace, 1), 1U);
}

}  // namespace
}  // namespace unflake
