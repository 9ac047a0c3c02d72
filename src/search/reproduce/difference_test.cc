#include "search/reproduce/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/trace_builder.h"

namespace unflake {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr char set_lock[] = "set.cc:20:pthread_mutex_lock";
constexpr char look_lock[] = "look.cc:12:pthread_mutex_lock";

// Main looks for what a worker sets. Both take their time, and others do something without meaning.
class Guesses {
 public:
  void add(int failing, int passing) {
    for (int i = 0; i < failing; ++i) add_run(true);
    for (int i = 0; i < passing; ++i) add_run(false);
  }

  std::vector<SeenRun> runs() const {
    std::vector<SeenRun> runs;
    for (size_t i = 0; i < traces_.size(); ++i) runs.push_back({&traces_[i], failed_[i]});
    return runs;
  }

 private:
  double some(double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(dice_);
  }

  void add_run(bool fails) {
    TraceBuilder builder;
    builder.thread("main").thread("w.cc:5#1", "main", 1).thread("noise.cc:5#1", "main", 1);
    const double look = some(10, 20);
    builder.call("w.cc:5#1", set_lock, fails ? look + 1 : look - 1, fails ? look + 1 : look - 1, 7);
    builder.call("main", look_lock, look, look, 7);
    builder.call("main", "look.cc:14:pthread_join", look + 3, look + 4, 8);
    for (const char* place : {"n.cc:1:read", "n.cc:2:write", "n.cc:3:read"}) {
      const double at = some(2, 30);
      builder.call("noise.cc:5#1", place, at, at, 9);
    }
    if (fails) builder.fails("main", "look.cc", 13, look + 2);
    traces_.push_back(builder.trace());
    failed_.push_back(fails);
  }

  std::mt19937 dice_{7};
  std::vector<Trace> traces_;
  std::vector<bool> failed_;
};

TEST(OrderDifference, Finds_the_order_that_only_failing_runs_have) {
  Guesses guesses;
  guesses.add(10, 20);
  const auto found = find_order_differences(guesses.runs());
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(to_string(found[0].first), "main comes to look.cc:12:pthread_mutex_lock");
  EXPECT_EQ(to_string(found[0].then), "w.cc:5#1 comes to set.cc:20:pthread_mutex_lock");
  EXPECT_EQ(found[0].in_failing, (Count{10, 10}));
  EXPECT_EQ(found[0].in_passing, (Count{0, 20}));
  EXPECT_TRUE(found[0].with_failing_thread);
  EXPECT_LT(found[0].p_of_all, 0.01);
}

TEST(OrderDifference, What_should_have_come_may_be_missing) {
  TraceBuilder passing, failing;
  for (TraceBuilder* one : {&passing, &failing})
    one->thread("main").thread("w.cc:5#1", "main", 1).call("main", look_lock, 10, 10, 7);
  passing.call("w.cc:5#1", set_lock, 8, 8, 7);
  failing.fails("main", "look.cc", 13, 11);
  const Trace passed = passing.trace(), failed = failing.trace();
  std::vector<SeenRun> runs(5, SeenRun{&failed, true});
  runs.resize(10, SeenRun{&passed, false});
  const auto found = find_order_differences(runs);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].first.thread, "main");
}

TEST(OrderDifference, What_follows_the_failure_is_not_its_reason) {
  TraceBuilder passing, failing;
  for (TraceBuilder* one : {&passing, &failing}) one->thread("main").thread("w.cc:5#1", "main", 1);
  passing.call("main", "a.cc:1:read", 30, 30).call("w.cc:5#1", "a.cc:2:read", 29, 29);
  failing.call("main", "a.cc:1:read", 30, 30).call("w.cc:5#1", "a.cc:2:read", 31, 31);
  failing.fails("main", "a.cc", 9, 20);
  const Trace passed = passing.trace(), failed = failing.trace();
  std::vector<SeenRun> runs(5, SeenRun{&failed, true});
  runs.resize(10, SeenRun{&passed, false});
  EXPECT_THAT(find_order_differences(runs), IsEmpty());
}

TEST(OrderDifference, Of_runs_that_differ_by_chance_alone_nothing_is_certain) {
  Guesses guesses;
  guesses.add(0, 24);
  std::vector<SeenRun> runs = guesses.runs();
  for (size_t i = 0; i < runs.size(); i += 3) runs[i].failed = true;
  for (const OrderDifference& order : find_order_differences(runs)) EXPECT_GT(order.p_of_all, 0.05);
}

TEST(OrderDifference, Needs_both_outcomes) {
  Guesses guesses;
  guesses.add(5, 0);
  EXPECT_THAT(find_order_differences(guesses.runs()), IsEmpty());
}

// Which worker does what is chance: what the pool does is not.
TEST(OrderDifference, Of_a_pool_whoever_comes_first_counts) {
  std::vector<Trace> traces;
  for (int i = 0; i < 20; ++i) {
    const bool fails = i < 10;
    const std::string first = i % 2 == 0 ? "pool.cc:31#1" : "pool.cc:31#2";
    const std::string second = i % 2 == 0 ? "pool.cc:31#2" : "pool.cc:31#1";
    TraceBuilder builder;
    builder.thread("main").thread("pool.cc:31#1", "main", 1).thread("pool.cc:31#2", "main", 1);
    builder.call(first, set_lock, fails ? 12 : 8, fails ? 12 : 8, 7);
    builder.call(second, set_lock, 20, 20, 7).call("main", look_lock, 10, 10, 7);
    if (fails) builder.fails("main", "look.cc", 13, 11);
    traces.push_back(builder.trace());
  }
  std::vector<SeenRun> runs;
  for (size_t i = 0; i < traces.size(); ++i) runs.push_back({&traces[i], i < 10});
  const auto found = find_order_differences(runs);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].then.thread, "pool.cc:31#*");
  EXPECT_EQ(found[0].in_failing, (Count{10, 10}));
}

// A test that starts its own program again.
TEST(OrderDifference, Threads_of_one_name_in_two_processes_are_two) {
  std::vector<Trace> traces;
  for (int i = 0; i < 10; ++i) {
    TraceBuilder builder;
    builder.thread("main").call("main", "parent.c:40:wait", 1, 2);
    Trace trace = builder.call("main", "parent.c:44:close", 10, 10).trace();
    TracedThread child = trace.threads[0];
    trace.processes.push_back({101, 0, no_index, "other", {}, {}});
    child.process = 1;
    trace.threads.push_back(child);
    TracedCall write = trace.calls[0];
    write.enter = write.exit = Duration(i < 5 ? 12'000 : 8'000);
    write.thread = 1;
    write.site = static_cast<uint32_t>(trace.sites.size());
    trace.calls.push_back(write);
    trace.sites.push_back({*parse_site("child.c:19:write"), "file", "", no_index, 0, 0});
    traces.push_back(std::move(trace));
  }
  std::vector<SeenRun> runs;
  for (size_t i = 0; i < traces.size(); ++i) runs.push_back({&traces[i], i < 5});
  const auto found = find_order_differences(runs);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(to_string(found[0].first), "main comes to parent.c:44:close");
  EXPECT_EQ(to_string(found[0].then), "main comes to child.c:19:write");
  EXPECT_EQ(found[0].then.process, 1u);
}

TEST(OrderDifference, Is_kept_by_a_hold) {
  Guesses guesses;
  guesses.add(10, 10);
  const auto runs = guesses.runs();
  const auto found = find_order_differences(runs);
  ASSERT_FALSE(found.empty());
  const std::vector<Intervention> plan = as_interventions(found[0], runs, HoldAt::call);
  ASSERT_THAT(plan, SizeIs(2));
  EXPECT_EQ(plan[0].action, Intervention::Action::watch);
  EXPECT_EQ(plan[0].thread.text, "main");
  EXPECT_EQ(plan[1].action, Intervention::Action::hold);
  EXPECT_EQ(to_string(plan[1].site), set_lock);
  EXPECT_EQ(plan[1].until, 0u);
  EXPECT_EQ(plan[1].count, 1u);
}

TEST(OrderDifference, Is_kept_a_step_before_where_what_decides_is_on_the_way) {
  std::vector<Trace> traces;
  for (int i = 0; i < 10; ++i) {
    const double counted = i < 5 ? 12 : 8;
    traces.push_back(TraceBuilder()
                         .thread("main")
                         .thread("w.cc:5#1", "main", 1)
                         .call("w.cc:5#1", "w.cc:9:write", 5, 5)
                         .call("w.cc:5#1", "w.cc:8:read", counted, counted)
                         .call("main", look_lock, 10, 10)
                         .trace());
  }
  std::vector<SeenRun> runs;
  for (size_t i = 0; i < traces.size(); ++i) runs.push_back({&traces[i], i < 5});
  const auto found = find_order_differences(runs);
  ASSERT_THAT(found, SizeIs(1));
  const std::vector<Intervention> plan = as_interventions(found[0], runs, HoldAt::step_before);
  ASSERT_THAT(plan, SizeIs(2));
  EXPECT_EQ(to_string(plan[1].site), "w.cc:9:write");
  EXPECT_EQ(plan[1].position, Intervention::Position::after);
  EXPECT_EQ(plan[1].nth, 1u);
}

}  // namespace
}  // namespace unflake
