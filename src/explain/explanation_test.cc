#include "explain/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/trace_builder.h"

namespace unflake {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* worker = "post.cc:22#1";

Repro repro_at(const std::string& site, const std::string& thread) {
  Repro repro;
  repro.test = {"post_test", "Post.Delivers"};
  repro.failure.file = "post_test.cc";
  repro.failure.line = 45;
  Intervention delay;
  delay.site = parse_site(site).value();
  delay.threads = Intervention::Threads::named;
  delay.thread.text = thread;
  delay.duration = std::chrono::milliseconds(100);
  repro.plan.interventions = {delay};
  return repro;
}

TraceBuilder two_threads() {
  TraceBuilder builder;
  builder.thread("main").thread(worker, "main", 1);
  return builder;
}

ObservedRun run_of(const TraceBuilder& builder, OutcomeKind kind) {
  ObservedRun run;
  run.trace = builder.trace();
  run.outcome.kind = kind;
  return run;
}

Explanation explain_pair(const Repro& repro, const TraceBuilder& passing,
                         const TraceBuilder& failing, OutcomeKind kind = OutcomeKind::fail,
                         const ExplainOptions& options = {}) {
  Repro known = repro;
  known.outcome = kind;
  const ObservedRun good = run_of(passing, OutcomeKind::pass), bad = run_of(failing, kind);
  return explain(known, &good, &bad, options);
}

RootCauseKind best(const Explanation& found) {
  return found.causes.front().kind;
}

// The library's calls are seen, those of the test that calls it are not.
TraceBuilder unseen_test(bool delayed) {
  TraceBuilder builder = two_threads();
  if (delayed) builder.delay(worker, "post.cc:24:pthread_mutex_lock", 5, 105);
  return builder.call(worker, "post.cc:24:pthread_mutex_lock", delayed ? 105 : 5, 105.1, 0xa)
      .call("main", "post.cc:30:pthread_mutex_lock", 12.1, 12.2, 0xa);
}

TracedFrame frame_in(uint32_t image, const std::string& function, const std::string& file = "",
                     int line = 0) {
  return {image, 0x1000, {{function, file, line, 0x1000, false}}};
}

// The failure has no line itself; where the project's code begins in its stack is said.
Explanation explain_failure(const std::string& site, const TraceBuilder& passing,
                            TraceBuilder failing, std::vector<TracedFrame> frames) {
  failing.fails("main", "", 0, 12.3);
  const ObservedRun good = run_of(passing, OutcomeKind::pass);
  ObservedRun bad = run_of(failing, OutcomeKind::fail);
  bad.trace.images = {{"/build/post_test", "", true}, {"/lib/libc.so.6", "", false}};
  bad.trace.failures.back().stack.frames = std::move(frames);
  return explain(repro_at(site, worker), &good, &bad);
}

TEST(ExplanationOfUnseenCode, Says_that_it_cannot_tell_and_blames_nobody) {
  const Explanation found = explain_failure(
      "post.cc:24:pthread_mutex_lock", unseen_test(false), unseen_test(true),
      {frame_in(0, "testing::UnitTest::AddTestPartResult"),
       frame_in(0, "Post_Delivers_Test::TestBody"), frame_in(0, "main"),
       frame_in(1, "__libc_start_call_main", "../nptl/libc_start_call_main.h", 58)});
  EXPECT_THAT(found.unseen, HasSubstr("Post_Delivers_Test::TestBody"));
  EXPECT_EQ(best(found), RootCauseKind::unknown);
  EXPECT_FALSE(found.pair);
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->place.file, "post_test.cc");
}

TEST(ExplanationOfUnseenCode, A_function_of_the_project_is_name_enough) {
  std::vector<TracedFrame> frames = {frame_in(0, "Post_Delivers_Test::TestBody"),
                                     frame_in(0, "main")};
  frames[0].first_project = 0;
  const Explanation found = explain_failure("post.cc:24:pthread_mutex_lock", unseen_test(false),
                                            unseen_test(true), frames);
  EXPECT_THAT(found.unseen, IsEmpty());
  EXPECT_TRUE(found.pair);
}

TEST(ExplanationOfUnseenCode, Addresses_in_a_stripped_program_explain_nothing) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  for (TraceBuilder* run : {&passing, &failing}) {
    const bool late = run == &failing;
    if (late) run->delay(worker, "post_test+0x1174:pthread_mutex_lock", 5, 105);
    run->call(worker, "post_test+0x1174:pthread_mutex_lock", late ? 105 : 5, 105.1, 0xa)
        .call("main", "post_test+0x1209:pthread_mutex_lock", 12.1, 12.2, 0xa);
  }
  std::vector<TracedFrame> frames = {frame_in(0, "")};
  frames[0].first_project = 0;
  const Explanation found =
      explain_failure("post_test+0x1174:pthread_mutex_lock", passing, failing, frames);
  EXPECT_THAT(found.unseen, HasSubstr("stripped"));
  EXPECT_FALSE(found.pair);
}

// A worker delivers while the test sleeps.
Explanation sleeping_test() {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "post.cc:24:pthread_mutex_lock", 5, 5.1, 0xa)
      .call("main", "post_test.cc:44:nanosleep", 2, 12)
      .asks_for(10)
      .call("main", "post.cc:30:pthread_mutex_lock", 12.1, 12.2, 0xa)
      .in("Test::TestBody", "post_test.cc", 45);
  failing.delay(worker, "post.cc:24:pthread_mutex_lock", 5, 105)
      .call(worker, "post.cc:24:pthread_mutex_lock", 105, 105.1, 0xa)
      .call("main", "post_test.cc:44:nanosleep", 2, 12)
      .asks_for(10)
      .call("main", "post.cc:30:pthread_mutex_lock", 12.1, 12.2, 0xa)
      .fails("main", "post_test.cc", 45, 12.3);
  return explain_pair(repro_at("post.cc:24:pthread_mutex_lock", worker), passing, failing);
}

TEST(Explanation, Of_a_sleep_that_was_too_short_is_an_async_wait) {
  const Explanation found = sleeping_test();
  EXPECT_EQ(best(found), RootCauseKind::async_wait);
  EXPECT_EQ(found.causes[1].kind, RootCauseKind::ordering);
}

// Its own header is project code, so that the first frame is the framework's.
TEST(Explanation, Of_a_check_of_a_framework_in_the_project_names_the_line_of_the_test) {
  TraceBuilder builder = two_threads();
  ObservedRun failing = run_of(builder.fails("main", "catch.hpp", 900, 12.3), OutcomeKind::fail);
  failing.trace.failures[0].stack.frames.push_back(
      {no_index, 0, {{"test_body", "/home/me/post_test.cc", 45, 0, false}}});
  Failure told;
  told.file = "post_test.cc";
  told.line = 45;
  failing.outcome.failures = {told};
  const ObservedRun passing = run_of(two_threads(), OutcomeKind::pass);
  const Explanation found =
      explain(repro_at("post.cc:24:pthread_mutex_lock", worker), &passing, &failing);
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->place.file, "/home/me/post_test.cc");
  EXPECT_EQ(found.failure->place.line, 45);
}

TEST(Explanation, Names_the_pair_on_the_object_that_both_threads_use) {
  const Explanation found = sleeping_test();
  ASSERT_TRUE(found.pair);
  EXPECT_TRUE(found.pair->same_object);
  EXPECT_EQ(found.pair->first.thread, worker);
  EXPECT_EQ(found.pair->first.started_by, "main at post.cc:22");
  EXPECT_EQ(found.pair->first.place.line, 24);
  EXPECT_EQ(found.pair->second.thread, "main");
  EXPECT_EQ(found.pair->second.place.line, 30);
}

TEST(Explanation, Names_the_line_of_the_test_from_which_the_barrier_point_was_reached) {
  const Explanation found = sleeping_test();
  ASSERT_TRUE(found.pair && found.pair->second.caller);
  EXPECT_EQ(found.pair->second.caller->line, 45);
}

TEST(Explanation, Says_how_long_the_test_waited_and_for_what) {
  const Explanation found = sleeping_test();
  ASSERT_TRUE(found.wait);
  EXPECT_TRUE(found.wait->is_sleep);
  EXPECT_EQ(found.wait->asked, Duration(10'000));
  EXPECT_EQ(found.wait->needed, Duration(3'000));
  EXPECT_EQ(found.wait->failing, Duration(10'000));
}

TEST(Explanation, Tells_where_which_thread_was_late_and_how_long) {
  const Explanation found = sleeping_test();
  ASSERT_EQ(found.late.size(), 1u);
  EXPECT_EQ(found.late[0].thread, worker);
  EXPECT_EQ(found.late[0].longest, Duration(100'000));
}

TEST(Explanation, Of_plain_memory_takes_the_failing_line_as_the_barrier_point) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "post.cc:23:nanosleep", 1.5, 5)
      .asks_for(3)
      .call("main", "post_test.cc:44:nanosleep", 2, 12)
      .asks_for(10)
      .call("main", "post.cc:18:pthread_join", 12.5, 12.6);
  failing.delay(worker, "post.cc:23:nanosleep", 1.5, 101.5)
      .call(worker, "post.cc:23:nanosleep", 101.5, 105)
      .asks_for(3)
      .call("main", "post_test.cc:44:nanosleep", 2, 12)
      .asks_for(10)
      .fails("main", "post_test.cc", 45, 12.3)
      .call("main", "post.cc:18:pthread_join", 12.5, 106);
  const Explanation found =
      explain_pair(repro_at("post.cc:23:nanosleep", worker), passing, failing);
  ASSERT_TRUE(found.pair);
  EXPECT_EQ(found.pair->first.place.line, 23);
  EXPECT_EQ(found.pair->second.what, Moment::What::failure);
  EXPECT_EQ(found.pair->second.place.line, 45);
  EXPECT_EQ(best(found), RootCauseKind::async_wait);
  ASSERT_TRUE(found.wait);
  EXPECT_EQ(found.wait->needed, Duration(3'000)) << "until the worker's sleep is over";
}

Explanation sleeping_test_with(const CauseFacts& facts) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "post.cc:24:pthread_mutex_lock", 5, 5.1, 0xa)
      .call("main", "post_test.cc:44:nanosleep", 2, 12)
      .asks_for(10)
      .call("main", "post.cc:30:pthread_mutex_lock", 12.1, 12.2, 0xb);
  failing.delay(worker, "post.cc:24:pthread_mutex_lock", 5, 105)
      .call(worker, "post.cc:24:pthread_mutex_lock", 105, 105.1, 0xa)
      .call("main", "post_test.cc:44:nanosleep", 2, 12)
      .asks_for(10)
      .call("main", "post.cc:30:pthread_mutex_lock", 12.1, 12.2, 0xb)
      .fails("main", "post_test.cc", 45, 12.3);
  const ObservedRun good = run_of(passing, OutcomeKind::pass);
  const ObservedRun bad = run_of(failing, OutcomeKind::fail);
  ExplainOptions options;
  options.facts = facts;
  return explain(repro_at("post.cc:24:pthread_mutex_lock", worker), &good, &bad, options);
}

TEST(Explanation, Says_nothing_that_an_experiment_contradicts) {
  EXPECT_EQ(best(sleeping_test_with({})), RootCauseKind::async_wait);
  CauseFacts facts;
  facts.longer_wait = {2, 2};
  EXPECT_EQ(best(sleeping_test_with(facts)), RootCauseKind::async_wait);
  facts.longer_wait = {0, 2};
  const Explanation found = sleeping_test_with(facts);
  EXPECT_NE(best(found), RootCauseKind::async_wait);
  EXPECT_FALSE(found.wait);
}

TEST(Explanation, Of_what_may_be_late_only_as_a_whole_is_half_done) {
  CauseFacts facts;
  facts.late_as_a_whole = {2, 2};
  const Explanation found = sleeping_test_with(facts);
  EXPECT_EQ(best(found), RootCauseKind::ordering);
  EXPECT_THAT(found.causes.front().evidence, Contains(HasSubstr("half done")));
}

TEST(Explanation, Of_an_order_that_was_refuted_names_another_pair_or_none) {
  const TraceBuilder passing = two_threads()
                                   .call(worker, "post.cc:24:write", 5, 5.1)
                                   .call("main", "post_test.cc:44:read", 12, 12.1);
  const TraceBuilder failing = two_threads()
                                   .delay(worker, "post.cc:24:write", 5, 105)
                                   .call(worker, "post.cc:24:write", 105, 105.1)
                                   .call("main", "post_test.cc:44:read", 12, 12.1);
  const ObservedRun good = run_of(passing, OutcomeKind::pass);
  const ObservedRun bad = run_of(failing, OutcomeKind::fail);
  ExplainOptions options;
  options.shown = ShownPair{0, 2, {3, 3}, {0, 3}};
  const Explanation found = explain(repro_at("post.cc:24:write", worker), &good, &bad, options);
  EXPECT_FALSE(found.pair && found.pair->is_shown);
  EXPECT_TRUE(!found.pair || found.pair->reversed.runs == 0);
}

TEST(Explanation, Of_an_unknown_cause_says_what_was_tried) {
  const ObservedRun same = run_of(two_threads(), OutcomeKind::pass);
  ExplainOptions options;
  options.experiments = {"late before it fails"};
  const Explanation found = explain(repro_at("post.cc:24:write", worker), &same, &same, options);
  ASSERT_EQ(best(found), RootCauseKind::unknown);
  EXPECT_THAT(found.causes.front().evidence, Contains("tried: late before it fails"));
}

TEST(Explanation, Of_a_timed_wait_that_ran_out_is_an_async_wait) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call("main", "post_test.cc:40:pthread_cond_clockwait", 2, 5.2, 0xc)
      .asks_for(50)
      .call(worker, "post.cc:24:pthread_cond_signal", 5, 5.1, 0xc);
  failing.call("main", "post_test.cc:40:pthread_cond_clockwait", 2, 52, 0xc)
      .asks_for(50)
      .times_out()
      .delay(worker, "post.cc:24:pthread_cond_signal", 5, 105)
      .call(worker, "post.cc:24:pthread_cond_signal", 105, 105.1, 0xc)
      .fails("main", "post_test.cc", 45, 52.3);
  const Explanation found =
      explain_pair(repro_at("post.cc:24:pthread_cond_signal", worker), passing, failing);
  EXPECT_EQ(best(found), RootCauseKind::async_wait);
  ASSERT_TRUE(found.wait);
  EXPECT_TRUE(found.wait->ran_out_failing);
  EXPECT_FALSE(found.wait->ran_out_passing);
}

TEST(Explanation, Without_any_wait_between_is_about_ordering) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "post.cc:24:pthread_mutex_lock", 2, 2.1, 0xa)
      .call("main", "post.cc:30:pthread_mutex_lock", 3, 3.1, 0xa);
  failing.delay(worker, "post.cc:24:pthread_mutex_lock", 2, 102)
      .call(worker, "post.cc:24:pthread_mutex_lock", 102, 102.1, 0xa)
      .call("main", "post.cc:30:pthread_mutex_lock", 3, 3.1, 0xa)
      .fails("main", "post_test.cc", 45, 3.3);
  const Explanation found =
      explain_pair(repro_at("post.cc:24:pthread_mutex_lock", worker), passing, failing);
  EXPECT_EQ(best(found), RootCauseKind::ordering);
  EXPECT_FALSE(found.wait);
}

TEST(Explanation, Of_a_signal_before_the_wait_is_a_lost_wakeup) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "post.cc:24:pthread_cond_wait", 2, 6, 0xc)
      .call("main", "post.cc:30:pthread_cond_signal", 5, 5.1, 0xc);
  failing.delay(worker, "post.cc:24:pthread_cond_wait", 2, 102)
      .call(worker, "post.cc:24:pthread_cond_wait", 102, 5000, 0xc)
      .never_ends()
      .call("main", "post.cc:30:pthread_cond_signal", 5, 5.1, 0xc);
  const Explanation found = explain_pair(repro_at("post.cc:24:pthread_cond_wait", worker), passing,
                                         failing, OutcomeKind::timeout);
  EXPECT_EQ(best(found), RootCauseKind::lost_wakeup);
  ASSERT_TRUE(found.pair);
  EXPECT_EQ(found.pair->first.place.line, 24);
  EXPECT_EQ(found.pair->second.place.line, 30);
}

// As workers do when there is nothing left to do.
TraceBuilder idle_worker(TraceBuilder builder) {
  return builder.call("main", "post.cc:30:pthread_cond_signal", 5, 5.1, 0xc)
      .call(worker, "post.cc:26:write", 101, 101.1)
      .call(worker, "post.cc:24:pthread_cond_wait", 102, 5000, 0xc)
      .never_ends();
}

Explanation of_idle_worker(const Count& waiting_first) {
  const TraceBuilder failing =
      idle_worker(two_threads().delay(worker, "post.cc:24:pthread_cond_wait", 2, 102))
          .fails("main", "post_test.cc", 45, 110);
  const Trace passed = two_threads()
                           .call(worker, "post.cc:24:pthread_cond_wait", 2, 6, 0xc)
                           .call("main", "post.cc:30:pthread_cond_signal", 5, 5.1, 0xc)
                           .trace();
  ObservedRun passing, failed;
  passing.trace = passed;
  failed.trace = failing.trace();
  failed.outcome.kind = OutcomeKind::fail;
  ExplainOptions options;
  options.experiments = {"no step was found"};
  options.facts.waiting_first = waiting_first;
  return explain(repro_at("post.cc:24:pthread_cond_wait", worker), &passing, &failed, options);
}

TEST(Explanation, Takes_no_worker_that_is_idle_at_the_end_for_one_that_lost_a_wakeup) {
  EXPECT_NE(best(of_idle_worker({})), RootCauseKind::lost_wakeup);
  EXPECT_EQ(best(of_idle_worker({2, 2})), RootCauseKind::lost_wakeup);
  EXPECT_TRUE(suspected_causes(of_idle_worker({})).lost_wakeup);
}

// The compiler has kept the end of one of two checks.
TEST(Explanation, Takes_the_line_that_was_printed_for_the_one_of_a_merged_check) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  failing.delay("main", "post.cc:24:nanosleep", 2, 102).fails("main", "/src/post_test.cc", 44, 110);
  ObservedRun passed, failed;
  passed.trace = passing.trace();
  failed.trace = failing.trace();
  failed.outcome.kind = OutcomeKind::crash;
  failed.outcome.failures = {Failure{}};
  failed.outcome.failures.front().file = "post_test.cc";
  failed.outcome.failures.front().line = 45;
  const Explanation found =
      explain(repro_at("post.cc:24:nanosleep", "main"), &passed, &failed, ExplainOptions());
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->place.line, 45);
  EXPECT_EQ(found.failure->place.function, "Test::TestBody");
}

TEST(Explanation, Of_a_signal_after_which_nobody_waits_may_be_a_lost_wakeup) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  for (TraceBuilder* builder : {&passing, &failing})
    builder->call("main", "post_test.cc:51:nanosleep", 2, 42)
        .asks_for(40)
        .call("main", "post.cc:18:pthread_cond_signal", 42.1, 42.2, 0xc);
  passing.call(worker, "post.cc:27:pthread_mutex_lock", 3, 3.1, 0xa)
      .call(worker, "post.cc:29:pthread_cond_wait", 3.2, 42.5, 0xc);
  failing.delay(worker, "post.cc:27:pthread_mutex_lock", 3, 103)
      .call(worker, "post.cc:27:pthread_mutex_lock", 103, 103.1, 0xa)
      .fails("main", "post_test.cc", 56, 110);
  const Explanation found =
      explain_pair(repro_at("post.cc:27:pthread_mutex_lock", worker), passing, failing);
  EXPECT_EQ(best(found), RootCauseKind::async_wait);
  EXPECT_EQ(found.causes[1].kind, RootCauseKind::lost_wakeup);
}

TEST(Explanation, Of_a_late_thread_that_fails_at_its_own_clock_is_exact_timing) {
  TraceBuilder passing, failing;
  passing.thread("main")
      .call("main", "clock_test.cc:10:clock_gettime", 1, 1)
      .call("main", "clock_test.cc:11:nanosleep", 1.1, 11.1)
      .asks_for(10)
      .call("main", "clock_test.cc:12:clock_gettime", 11.2, 11.2);
  failing.thread("main")
      .call("main", "clock_test.cc:10:clock_gettime", 1, 1)
      .delay("main", "clock_test.cc:11:nanosleep", 1.1, 31.1)
      .call("main", "clock_test.cc:11:nanosleep", 31.1, 41.1)
      .asks_for(10)
      .call("main", "clock_test.cc:12:clock_gettime", 41.2, 41.2)
      .fails("main", "clock_test.cc", 13, 41.3);
  const Explanation found =
      explain_pair(repro_at("clock_test.cc:11:nanosleep", "main"), passing, failing);
  EXPECT_EQ(best(found), RootCauseKind::exact_timing);
  EXPECT_FALSE(found.pair);
  EXPECT_THAT(found.notes, IsEmpty()) << "there is nobody to race with";
}

TEST(Explanation, Of_a_late_thread_between_two_looks_at_the_clock_is_exact_timing) {
  TraceBuilder passing, failing;
  passing.thread("main")
      .call("main", "clock_test.cc:10:clock_gettime", 1, 1)
      .call("main", "loop.cc:11:poll", 1.1, 11.1)
      .call("main", "clock_test.cc:12:clock_gettime", 11.2, 11.2)
      .call("main", "clock_test.cc:20:poll", 11.5, 11.6);
  failing.thread("main")
      .call("main", "clock_test.cc:10:clock_gettime", 1, 1)
      .call("main", "loop.cc:11:poll", 1.1, 11.1)
      .delay("main", "clock_test.cc:12:clock_gettime", 11.2, 31.2)
      .call("main", "clock_test.cc:12:clock_gettime", 31.2, 31.2)
      .call("main", "clock_test.cc:30:close", 31.3, 31.3)
      .fails("main", "clock_test.cc", 13, 31.4);
  Repro repro = repro_at("clock_test.cc:12:clock_gettime", "main");
  repro.failure.file = "clock_test.cc";
  ExplainOptions options;
  options.shown = ShownPair{2, std::nullopt, {}, {}, 0};
  EXPECT_EQ(best(explain_pair(repro, passing, failing, OutcomeKind::fail, options)),
            RootCauseKind::exact_timing);
  options.other_way = CodeSpot{"clock_test.cc", 30, "Loop::time_out"};
  EXPECT_EQ(best(explain_pair(repro, passing, failing, OutcomeKind::fail, options)),
            RootCauseKind::async_wait)
      << "a look of the loop's own";
  options.other_way.reset();
  repro.failure.file = "elsewhere.cc";
  EXPECT_NE(best(explain_pair(repro, passing, failing, OutcomeKind::fail, options)),
            RootCauseKind::exact_timing);
}

// An event loop that serves its own time-outs: the same calls, but another way through the code.
TEST(Explanation, Of_a_late_thread_that_goes_another_way_is_an_async_wait) {
  TraceBuilder passing, failing;
  for (TraceBuilder* builder : {&passing, &failing})
    builder->thread("main").call("main", "loop.cc:10:clock_gettime", 1, 1);
  passing.call("main", "loop.cc:20:clock_gettime", 2, 2);
  failing.delay("main", "loop.cc:20:clock_gettime", 2, 102)
      .call("main", "loop.cc:20:clock_gettime", 102, 102)
      .fails("main", "loop_test.cc", 13, 103);
  const Repro repro = repro_at("loop.cc:20:clock_gettime", "main");
  EXPECT_EQ(best(explain_pair(repro, passing, failing)), RootCauseKind::exact_timing);
  const ObservedRun good = run_of(passing, OutcomeKind::pass),
                    bad = run_of(failing, OutcomeKind::fail);
  ExplainOptions options;
  options.other_way = CodeSpot{"loop.cc", 54, "Loop::time_out"};
  const Explanation found = explain(repro, &good, &bad, options);
  EXPECT_EQ(best(found), RootCauseKind::async_wait);
  EXPECT_THAT(found.causes.front().evidence, Contains(HasSubstr("loop.cc:54")));
}

// Without experiments the pair that is about one object would be told.
TEST(Explanation, Tells_the_critical_point_that_was_shown_even_if_nobody_could_wait_for_it) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "queue.cc:31:write", 5, 5.1, 7)
      .call(worker, "queue.cc:33:unlink", 6, 6.1)
      .call("main", "queue_test.cc:12:read", 12, 12.1, 7);
  failing.delay(worker, "queue.cc:31:write", 5, 105)
      .call("main", "queue_test.cc:12:read", 12, 12.1, 7)
      .fails("main", "queue_test.cc", 13, 13)
      .call(worker, "queue.cc:31:write", 105, 105.1, 7)
      .call(worker, "queue.cc:33:unlink", 106, 106.1);
  const Repro repro = repro_at("queue.cc:31:write", worker);
  const ObservedRun good = run_of(passing, OutcomeKind::pass),
                    bad = run_of(failing, OutcomeKind::fail);
  const Explanation guessed = explain(repro, &good, &bad);
  ASSERT_TRUE(guessed.pair);
  EXPECT_EQ(guessed.pair->first.place.line, 31);
  const auto unlink = std::ranges::find_if(good.trace.calls, [&](const TracedCall& call) {
    return good.trace.sites[call.site].name.api == "unlink";
  });
  ASSERT_NE(unlink, good.trace.calls.end());
  ExplainOptions options;
  options.shown = ShownPair{static_cast<size_t>(unlink - good.trace.calls.begin()), {}, {}, {}};
  const Explanation found = explain(repro, &good, &bad, options);
  ASSERT_TRUE(found.pair);
  EXPECT_EQ(found.pair->first.place.line, 33);
  EXPECT_FALSE(found.pair->is_shown);
}

TEST(Explanation, Of_a_descriptor_that_is_closed_before_it_is_used_is_a_teardown_race) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  for (TraceBuilder* builder : {&passing, &failing})
    builder->call("main", "file_test.cc:30:nanosleep", 2, 12)
        .asks_for(10)
        .call("main", "file.cc:21:close", 12.1, 12.2, 7);
  passing.call(worker, "file.cc:31:write", 5, 5.1, 7);
  failing.delay(worker, "file.cc:31:write", 5, 105)
      .call(worker, "file.cc:31:write", 105, 105.1, 7)
      .returns(-1)
      .fails("main", "file_test.cc", 33, 110);
  const Explanation found = explain_pair(repro_at("file.cc:31:write", worker), passing, failing);
  EXPECT_EQ(best(found), RootCauseKind::teardown_race);
}

TEST(Explanation, Names_threads_by_what_they_run) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  for (TraceBuilder* builder : {&passing, &failing})
    builder->call("main", "post_test.cc:44:nanosleep", 2, 12)
        .asks_for(10)
        .call("main", "post.cc:30:pthread_mutex_lock", 12.1, 12.2, 0xa);
  passing.call(worker, "post.cc:24:pthread_mutex_lock", 5, 5.1, 0xa)
      .in("std::lock_guard", "/usr/include/mutex", 3)
      .called_at("(anonymous namespace)::Post::deliver", "post.cc", 24);
  failing.delay(worker, "post.cc:24:pthread_mutex_lock", 5, 105)
      .call(worker, "post.cc:24:pthread_mutex_lock", 105, 105.1, 0xa)
      .in("std::lock_guard", "/usr/include/mutex", 3)
      .called_at("(anonymous namespace)::Post::deliver", "post.cc", 24)
      .fails("main", "post_test.cc", 45, 12.3);
  const Explanation found =
      explain_pair(repro_at("post.cc:24:pthread_mutex_lock", worker), passing, failing);
  ASSERT_TRUE(found.pair);
  EXPECT_EQ(found.pair->first.role, "the thread that runs `Post::deliver`");
  EXPECT_EQ(found.pair->second.role, "") << "of the first thread";
}

TEST(Explanation, Of_a_thread_that_measures_how_long_the_late_one_took_is_exact_timing) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call("main", "clock_test.cc:10:clock_gettime", 0.5, 0.5)
      .call(worker, "clock_test.cc:5:nanosleep", 1, 11)
      .asks_for(10)
      .call("main", "clock_test.cc:11:pthread_join", 1, 11.5)
      .call("main", "clock_test.cc:12:clock_gettime", 11.6, 11.6);
  failing.call("main", "clock_test.cc:10:clock_gettime", 0.5, 0.5)
      .delay(worker, "clock_test.cc:5:nanosleep", 1, 101)
      .call(worker, "clock_test.cc:5:nanosleep", 101, 111)
      .asks_for(10)
      .call("main", "clock_test.cc:11:pthread_join", 1, 111.5)
      .call("main", "clock_test.cc:12:clock_gettime", 111.6, 111.6)
      .fails("main", "clock_test.cc", 13, 111.7);
  EXPECT_EQ(best(explain_pair(repro_at("clock_test.cc:5:nanosleep", worker), passing, failing)),
            RootCauseKind::exact_timing);
}

TEST(Explanation, Of_two_threads_that_sleep_while_a_third_checks_is_about_ordering) {
  constexpr const char* other = "post.cc:23#1";
  TraceBuilder passing = two_threads(), failing = two_threads();
  for (TraceBuilder* builder : {&passing, &failing})
    builder->thread(other, "main", 1)
        .call(other, "post.cc:37:nanosleep", 2, 20)
        .asks_for(18)
        .call(other, "post.cc:19:pthread_mutex_lock", 20.1, 20.2, 0xa);
  passing.call(worker, "post.cc:18:pthread_mutex_lock", 6, 6.1, 0xa);
  failing.delay(worker, "post.cc:18:pthread_mutex_lock", 6, 106)
      .call(worker, "post.cc:18:pthread_mutex_lock", 106, 106.1, 0xa)
      .fails("main", "post_test.cc", 45, 107);
  EXPECT_EQ(best(explain_pair(repro_at("post.cc:18:pthread_mutex_lock", worker), passing, failing)),
            RootCauseKind::ordering);
}

TEST(Explanation, Of_a_crash_after_a_destructor_is_a_teardown_race) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "post.cc:24:pthread_mutex_lock", 2, 2.1, 0xa)
      .call("main", "post.cc:60:close", 3, 3.1, 5);
  failing.delay(worker, "post.cc:24:pthread_mutex_lock", 2, 102)
      .call(worker, "post.cc:24:pthread_mutex_lock", 102, 102.1, 0xa)
      .call("main", "post.cc:60:close", 3, 3.1, 5)
      .in("Post::~Post", "post.cc", 60)
      .fails(worker, "post.cc", 25, 102.3, "Post::work");
  const Explanation found = explain_pair(repro_at("post.cc:24:pthread_mutex_lock", worker), passing,
                                         failing, OutcomeKind::crash);
  EXPECT_EQ(best(found), RootCauseKind::teardown_race);
  EXPECT_THAT(found.causes[0].evidence, Contains(HasSubstr("Post::~Post")));
}

// A mock that is called once too often reports it when a guard of its framework goes away.
TEST(Explanation, Of_a_failure_reported_by_a_destructor_of_the_framework_is_no_teardown_race) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "post.cc:24:pthread_mutex_lock", 2, 2.1, 0xa)
      .call("main", "post.cc:60:nanosleep", 3, 3.1);
  failing.delay(worker, "post.cc:24:pthread_mutex_lock", 2, 102)
      .call("main", "post.cc:60:nanosleep", 3, 3.1)
      .fails("main", "gmock.h", 25, 4, "testing::internal::Cleanup::~Cleanup");
  const Explanation found =
      explain_pair(repro_at("post.cc:24:pthread_mutex_lock", worker), passing, failing);
  for (const RootCause& cause : found.causes)
    EXPECT_NE(cause.kind, RootCauseKind::teardown_race) << cause.evidence.front();
}

TEST(Explanation, Of_two_threads_that_hold_what_the_other_wants_is_a_deadlock) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "post.cc:24:pthread_mutex_lock", 2, 2.1, 0xa)
      .call(worker, "post.cc:25:pthread_mutex_lock", 2.2, 2.3, 0xb)
      .call("main", "post.cc:30:pthread_mutex_lock", 4, 4.1, 0xb)
      .call("main", "post.cc:31:pthread_mutex_lock", 4.2, 4.3, 0xa);
  failing.call(worker, "post.cc:24:pthread_mutex_lock", 2, 2.1, 0xa)
      .delay(worker, "post.cc:25:pthread_mutex_lock", 2.2, 102.2)
      .call(worker, "post.cc:25:pthread_mutex_lock", 102.2, 5000, 0xb)
      .never_ends()
      .call("main", "post.cc:30:pthread_mutex_lock", 4, 4.1, 0xb)
      .call("main", "post.cc:31:pthread_mutex_lock", 4.2, 5000, 0xa)
      .never_ends();
  const Explanation found = explain_pair(repro_at("post.cc:25:pthread_mutex_lock", worker), passing,
                                         failing, OutcomeKind::timeout);
  EXPECT_EQ(best(found), RootCauseKind::deadlock);
  EXPECT_THAT(found.causes[0].evidence, Contains(HasSubstr("main waits at post.cc:31")));
}

TEST(Explanation, Of_a_pair_in_two_processes_is_a_hand_over) {
  TraceBuilder passing, failing;
  for (TraceBuilder* builder : {&passing, &failing})
    builder->thread("main").process().thread("server!main");
  passing.call("server!main", "server!server.cc:9:listen", 2, 2.1, 3)
      .call("main", "client.cc:20:connect", 4, 4.1, 3);
  failing.delay("server!main", "server!server.cc:9:listen", 2, 102)
      .call("server!main", "server!server.cc:9:listen", 102, 102.1, 3)
      .call("main", "client.cc:20:connect", 4, 4.1, 3)
      .returns(-1)
      .fails("main", "client.cc", 21, 4.3);
  const Explanation found =
      explain_pair(repro_at("server!server.cc:9:listen", "server!main"), passing, failing);
  EXPECT_EQ(best(found), RootCauseKind::process_handover);
  EXPECT_FALSE(found.pair->same_object);
}

TEST(Explanation, Of_two_processes_is_a_hand_over_even_when_the_test_sleeps) {
  TraceBuilder passing, failing;
  for (TraceBuilder* one : {&passing, &failing})
    one->thread("main").process().thread("child", "main", 1);
  passing.call("child", "post.cc:24:write", 5, 5.1)
      .call("main", "post_test.cc:44:nanosleep", 2, 22)
      .asks_for(20)
      .call("main", "post_test.cc:45:read", 22, 22.1);
  failing.delay("child", "post.cc:24:write", 5, 105)
      .call("child", "post.cc:24:write", 105, 105.1)
      .call("main", "post_test.cc:44:nanosleep", 2, 22)
      .asks_for(20)
      .call("main", "post_test.cc:45:read", 22, 22.1)
      .fails("main", "post_test.cc", 46, 23);
  const Explanation found = explain_pair(repro_at("post.cc:24:write", "child"), passing, failing);
  EXPECT_EQ(best(found), RootCauseKind::process_handover);
}

TEST(Explanation, Of_a_refused_connection_is_a_resource_and_the_call_is_the_barrier_point) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "post.cc:24:accept", 5, 31)
      .call("main", "post_test.cc:44:nanosleep", 2, 22)
      .asks_for(20)
      .call("main", "post_test.cc:45:connect", 22, 22.1);
  failing.delay(worker, "post.cc:24:accept", 5, 105)
      .call(worker, "post.cc:24:accept", 105, 106)
      .call("main", "post_test.cc:44:nanosleep", 2, 22)
      .asks_for(20)
      .call("main", "post_test.cc:45:connect", 22, 22.1)
      .returns(-1)
      .fails("main", "post_test.cc", 46, 23);
  const Explanation found = explain_pair(repro_at("post.cc:24:accept", worker), passing, failing);
  EXPECT_EQ(best(found), RootCauseKind::resource);
  ASSERT_TRUE(found.pair);
  EXPECT_EQ(found.pair->second.place.line, 45);
}

// A program without a framework: nothing says where it failed.
TEST(Explanation, Of_a_bad_exit_status_looks_before_the_first_thread_goes_another_way) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "post.cc:24:pthread_mutex_lock", 5, 5.1, 0xa)
      .call("main", "post.cc:30:pthread_mutex_lock", 12, 12.1, 0xa)
      .call("main", "post_test.cc:50:send", 13, 13.1)
      .call("main", "post.cc:60:pthread_mutex_lock", 14, 14.1, 0xa);
  failing.delay(worker, "post.cc:24:pthread_mutex_lock", 5, 105)
      .call(worker, "post.cc:24:pthread_mutex_lock", 105, 105.1, 0xa)
      .call("main", "post.cc:30:pthread_mutex_lock", 12, 12.1, 0xa)
      .call("main", "post.cc:60:pthread_mutex_lock", 14, 14.1, 0xa);
  Repro repro = repro_at("post.cc:24:pthread_mutex_lock", worker);
  repro.failure = {};
  const Explanation found = explain_pair(repro, passing, failing);
  ASSERT_TRUE(found.pair);
  EXPECT_EQ(found.pair->second.place.line, 30);
}

TEST(Explanation, Of_a_delay_at_a_line_has_its_critical_point_there) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "ring.cc:18", 5, 5)
      .call(worker, "ring.cc:25:pthread_mutex_lock", 6, 6.1, 0xa)
      .call("main", "ring_test.cc:46:pthread_mutex_lock", 12, 12.1, 0xa);
  failing.call(worker, "ring.cc:18", 5, 5)
      .delay(worker, "ring.cc:18", 5, 105)
      .call(worker, "ring.cc:25:pthread_mutex_lock", 106, 106.1, 0xb)
      .call("main", "ring_test.cc:46:pthread_mutex_lock", 12, 12.1, 0xa)
      .fails("main", "ring_test.cc", 48, 13);
  const Explanation found = explain_pair(repro_at("ring.cc:18", worker), passing, failing);
  EXPECT_EQ(best(found), RootCauseKind::ordering);
  ASSERT_TRUE(found.pair);
  EXPECT_EQ(found.pair->first.place.line, 18);
}

// A test sleeps instead of waiting, and experiments found the line before which lateness matters.
TEST(Explanation, Of_a_delay_at_a_line_that_experiments_chose_says_nothing_of_the_cause) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "ring.cc:18", 5, 5)
      .call("main", "ring_test.cc:40:nanosleep", 2, 12)
      .asks_for(10)
      .call("main", "ring_test.cc:46:pthread_mutex_lock", 12, 12.1, 0xa);
  failing.call(worker, "ring.cc:18", 5, 5)
      .delay(worker, "ring.cc:18", 5, 105)
      .call("main", "ring_test.cc:40:nanosleep", 2, 12)
      .asks_for(10)
      .call("main", "ring_test.cc:46:pthread_mutex_lock", 12, 12.1, 0xa)
      .fails("main", "ring_test.cc", 48, 13);
  const ObservedRun good{passing.trace(), {}, {}}, bad{failing.trace(), {}, {}};
  const Repro repro = repro_at("ring.cc:18", worker);
  ExplainOptions options;
  EXPECT_EQ(best(explain(repro, &good, &bad, options)), RootCauseKind::ordering);
  options.is_place_chosen = true;
  EXPECT_EQ(best(explain(repro, &good, &bad, options)), RootCauseKind::async_wait);
}

// As locks wait that a program has made of futexes.
TEST(Explanation, Of_threads_that_wait_for_different_things_for_ever_is_a_deadlock) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "lock.cc:12:futex_wait", 5, 6, 0xa)
      .call("main", "lock.cc:30:nanosleep", 2, 12)
      .call("main", "lock.cc:12:futex_wait", 12, 12.1, 0xb);
  failing.delay(worker, "lock.cc:12:futex_wait", 5, 15)
      .call(worker, "lock.cc:12:futex_wait", 15, 1000, 0xa)
      .never_ends()
      .call("main", "lock.cc:30:nanosleep", 2, 12)
      .call("main", "lock.cc:12:futex_wait", 12, 1000, 0xb)
      .never_ends();
  Repro repro = repro_at("lock.cc:12:futex_wait", worker);
  repro.failure = {};
  EXPECT_EQ(best(explain_pair(repro, passing, failing, OutcomeKind::timeout)),
            RootCauseKind::deadlock);
}

TEST(Explanation, Of_a_signal_that_nobody_looks_for_is_a_lost_wake_up) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "bell.cc:12:pthread_mutex_lock", 2, 2.1, 0xa)
      .call(worker, "bell.cc:13:pthread_cond_wait", 3, 12.2, 0xb)
      .call("main", "bell.cc:30:nanosleep", 2, 12)
      .call("main", "bell.cc:20:pthread_cond_signal", 12.1, 12.1, 0xb)
      .call("main", "bell.cc:25:pthread_cond_signal", 30, 30, 0xb);
  failing.delay(worker, "bell.cc:12:pthread_mutex_lock", 2, 22)
      .call(worker, "bell.cc:12:pthread_mutex_lock", 22, 22.1, 0xa)
      .call(worker, "bell.cc:13:pthread_cond_wait", 23, 30.1, 0xb)
      .call("main", "bell.cc:30:nanosleep", 2, 12)
      .call("main", "bell.cc:20:pthread_cond_signal", 12.1, 12.1, 0xb)
      .call("main", "bell.cc:25:pthread_cond_signal", 30, 30, 0xb)
      .fails("main", "bell_test.cc", 48, 31);
  EXPECT_EQ(best(explain_pair(repro_at("bell.cc:12:pthread_mutex_lock", worker), passing, failing)),
            RootCauseKind::lost_wakeup);
}

TEST(Explanation, Of_a_lock_that_came_too_late_is_starvation) {
  constexpr const char* unlock = "table.cc:25:pthread_rwlock_unlock";
  constexpr const char* timed_lock = "table.cc:28:pthread_rwlock_clockwrlock";
  TraceBuilder passing = two_threads(), failing = two_threads();
  passing.call(worker, "table.cc:23:nanosleep", 5, 7)
      .call(worker, unlock, 7, 7, 0xa)
      .call("main", timed_lock, 6, 7.1, 0xa)
      .asks_for(50);
  failing.call(worker, "table.cc:23:nanosleep", 5, 7)
      .delay(worker, "table.cc:23:nanosleep", 7, 107)
      .call(worker, unlock, 107, 107, 0xa)
      .call("main", timed_lock, 6, 56, 0xa)
      .asks_for(50)
      .times_out()
      .fails("main", "table_test.cc", 64, 57);
  const Explanation found =
      explain_pair(repro_at("table.cc:23:nanosleep", worker), passing, failing);
  EXPECT_EQ(best(found), RootCauseKind::starvation);
  ASSERT_TRUE(found.pair);
  EXPECT_EQ(found.pair->first.place.line, 25);
}

TEST(Explanation, Of_a_message_about_a_used_address_is_a_resource) {
  Repro repro = repro_at("post.cc:24:bind", worker);
  repro.failure.message = "bind: Address already in use";
  EXPECT_EQ(best(explain(repro, nullptr, nullptr)), RootCauseKind::resource);
}

TEST(Explanation, Of_scarce_processors_alone_is_starvation) {
  Repro repro;
  repro.conditions.one_core = true;
  EXPECT_EQ(best(explain(repro, nullptr, nullptr)), RootCauseKind::starvation);
}

TEST(Explanation, Without_runs_says_that_it_does_not_know_and_why) {
  const Repro repro = repro_at("post.cc:24:pthread_mutex_lock", worker);
  const Explanation found = explain(repro, nullptr, nullptr);
  EXPECT_EQ(best(found), RootCauseKind::unknown);
  EXPECT_THAT(found.notes, Contains(HasSubstr("no failing run")));
  ASSERT_EQ(found.late.size(), 1u);
  EXPECT_EQ(found.late[0].site, "post.cc:24:pthread_mutex_lock");
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->place.line, 45);
}

TEST(Explanation, Of_two_equal_runs_finds_no_pair) {
  TraceBuilder both = two_threads();
  both.call(worker, "post.cc:24:pthread_mutex_lock", 2, 2.1, 0xa)
      .call("main", "post.cc:30:pthread_mutex_lock", 3, 3.1, 0xa);
  const Explanation found =
      explain_pair(repro_at("post.cc:24:pthread_mutex_lock", worker), both, both);
  EXPECT_FALSE(found.pair);
  EXPECT_EQ(best(found), RootCauseKind::unknown);
}

// The test fails by itself because main is too quick; when main is late, it passes.
TEST(Explanation, Of_a_plan_that_makes_it_pass_is_told_the_other_way_round) {
  TraceBuilder passing = two_threads(), failing = two_threads();
  failing.call("main", "post.cc:30:pthread_mutex_lock", 2, 2.1, 0xa)
      .fails("main", "post_test.cc", 45, 2.2)
      .call(worker, "post.cc:24:pthread_mutex_lock", 5, 5.1, 0xa);
  passing.delay("main", "post.cc:30:pthread_mutex_lock", 2, 102)
      .call("main", "post.cc:30:pthread_mutex_lock", 102, 102.1, 0xa)
      .call(worker, "post.cc:24:pthread_mutex_lock", 5, 5.1, 0xa);
  Repro repro = repro_at("post.cc:30:pthread_mutex_lock", "main");
  repro.passes_under_plan = true;
  const Explanation found = explain_pair(repro, passing, failing);
  ASSERT_TRUE(found.pair);
  EXPECT_EQ(found.pair->first.thread, worker);
  EXPECT_EQ(found.pair->second.thread, "main");
}

TEST(Explanation, Survives_numbers_that_lead_nowhere) {
  TraceBuilder builder = two_threads();
  builder.call("main", "post.cc:30:pthread_mutex_lock", 1, 2).call(worker, "a.cc:1:read", 3, 4);
  ObservedRun run = run_of(builder, OutcomeKind::fail);
  run.trace.calls[0].thread = 77;
  run.trace.calls[1].site = 77;
  run.trace.threads[1].parent = 99;
  run.trace.failures.push_back({"assertion", 55, 0, {}, "", 0, "", "", {}});
  const Repro repro = repro_at("post.cc:30:pthread_mutex_lock", "main");
  EXPECT_THAT(explain(repro, &run, &run).causes, Not(IsEmpty()));
}

TEST(Explanation, Is_the_same_every_time) {
  const Explanation one = sleeping_test(), two = sleeping_test();
  EXPECT_EQ(one.pair->first.place, two.pair->first.place);
  EXPECT_EQ(one.pair->second.place, two.pair->second.place);
  EXPECT_EQ(one.causes.size(), two.causes.size());
}

TEST(RootCauseKind, Each_has_a_name_and_advice) {
  for (int i = 0; i <= static_cast<int>(RootCauseKind::unknown); ++i) {
    EXPECT_FALSE(to_string(static_cast<RootCauseKind>(i)).empty());
    EXPECT_FALSE(advice_for(static_cast<RootCauseKind>(i)).empty());
  }
}

}  // namespace
}  // namespace unflake
