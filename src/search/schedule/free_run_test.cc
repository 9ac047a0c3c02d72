#include "search/schedule/free_run.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Position = Intervention::Position;

// A run of two threads in which `call.cc:7` is `points` points for each call.
Trace two_threads(const std::string& site, uint64_t calls, uint64_t points) {
  Trace trace;
  trace.threads.resize(2);
  trace.threads[0].name = {"main", 1, 1};
  trace.threads[1].name = {"main.cc:1#1", 11, 10};
  TracedSite there;
  there.name = *parse_site(site);
  trace.sites.push_back(there);
  trace.visits.push_back({1, 0, calls, {}});
  trace.controlled.emplace();
  trace.controlled->threads = {0, 1};
  SwitchPoint point;
  point.thread = 1;
  point.site = 0;
  trace.controlled->points.assign(calls * points, point);
  return trace;
}

OrderConstraint main_after(const std::string& site, uint64_t visit) {
  return {0, *parse_site("main.cc:5:read"), 2, 1, *parse_site(site), visit};
}

TEST(Orders, are_a_watch_and_a_hold_in_a_free_run) {
  const char* unlock = "call.cc:7:pthread_mutex_unlock";
  const auto plan = as_interventions({main_after(unlock, 3)}, two_threads(unlock, 4, 1));
  ASSERT_EQ(2u, plan.size());
  EXPECT_EQ(Intervention::Action::watch, plan[0].action);
  EXPECT_EQ(Intervention::Position::after, plan[0].position);
  EXPECT_EQ(11u, plan[0].thread.name);
  EXPECT_EQ(Intervention::Action::hold, plan[1].action);
  EXPECT_EQ("main", plan[1].thread.text);
  EXPECT_EQ(2u, plan[1].nth);
  EXPECT_EQ(3u, plan[1].count);
  EXPECT_EQ(0u, plan[1].until);
}

TEST(Orders, count_calls_and_not_the_points_of_a_call) {
  const char* unlock = "call.cc:7:pthread_mutex_unlock";
  const auto second = as_interventions({main_after(unlock, 3)}, two_threads(unlock, 4, 2));
  EXPECT_EQ(2u, second.at(1).count);
  EXPECT_EQ(Intervention::Position::after, second[0].position);
  const char* wait = "call.cc:7:pthread_cond_wait";
  const auto begun = as_interventions({main_after(wait, 1)}, two_threads(wait, 1, 2));
  EXPECT_EQ(Intervention::Position::before, begun.at(0).position);
  const auto woken = as_interventions({main_after(wait, 2)}, two_threads(wait, 1, 2));
  EXPECT_EQ(Intervention::Position::after, woken.at(0).position);
}

TEST(Orders, of_instructions_are_passed_behind_them) {
  const auto plan = as_interventions({main_after("f+0x3c", 1)}, two_threads("f+0x3c", 1, 1));
  EXPECT_EQ(Intervention::Position::after, plan.at(0).position);
  const auto line = as_interventions({main_after("call.cc:7", 1)}, two_threads("call.cc:7", 1, 1));
  EXPECT_EQ(Intervention::Position::before, line.at(0).position);
}

TEST(Orders, of_unknown_threads_are_none) {
  OrderConstraint order = main_after("call.cc:7", 1);
  order.other = 9;
  EXPECT_TRUE(as_interventions({order}, two_threads("call.cc:7", 1, 1)).empty());
}

// Thread 0 is main, thread 1 a worker that main creates.
class LateTrace {
 public:
  LateTrace() {
    trace_.threads.resize(2);
    trace_.threads[0].name = {"main", 1, 1};
    trace_.threads[1].name = {"main.cc:1#1", 11, 10};
    trace_.controlled.emplace();
    trace_.controlled->threads = {0, 1};
  }

  LateTrace& point(Duration at, ThreadNumber thread, const std::string& site,
                   std::vector<ThreadNumber> enabled, std::vector<ThreadNumber> ready,
                   ThreadNumber chosen) {
    SwitchPoint point;
    point.at = at;
    point.thread = thread;
    point.site = site_number(site);
    point.enabled = std::move(enabled);
    point.ready = std::move(ready);
    point.chosen = chosen;
    trace_.controlled->points.push_back(std::move(point));
    trace_.controlled->virtual_time = at;
    return *this;
  }

  LateTrace& ends(Duration at) {
    trace_.controlled->virtual_time = at;
    return *this;
  }
  // The worker never ran, so that the trace has no name for it.
  LateTrace& without_worker() {
    trace_.controlled->threads = {0};
    return *this;
  }

  const Trace& trace() const { return trace_; }
  std::vector<LateVisit> late() const { return late_visits(trace_, LateTrace().trace_); }

 private:
  uint32_t site_number(const std::string& text) {
    TracedSite site;
    site.name = *parse_site(text);
    site.group = site.name.api == "pthread_create" ? "thread" : "lock";
    const auto known = std::ranges::find(trace_.sites, site.name, &TracedSite::name);
    if (known == trace_.sites.end()) trace_.sites.push_back(site);
    return static_cast<uint32_t>(std::ranges::find(trace_.sites, site.name, &TracedSite::name) -
                                 trace_.sites.begin());
  }

  Trace trace_;
};

constexpr const char* create = "main.cc:1:pthread_create";
constexpr const char* nap = "main.cc:5:nanosleep";
constexpr const char* lock = "work.cc:3:pthread_mutex_lock";

TEST(LateVisits, are_where_a_ready_thread_was_passed_over_while_time_passed) {
  const auto late = LateTrace()
                        .point(1us, 0, nap, {0, 1}, {1}, 1)
                        .point(2us, 1, lock, {0, 1}, {1}, 0)
                        .point(50ms, 0, "main.cc:6:pthread_mutex_lock", {0, 1}, {0, 1}, 1)
                        .late();
  ASSERT_EQ(1u, late.size());
  EXPECT_EQ("main.cc:1#1", late[0].delay.thread.text);
  EXPECT_EQ(lock, to_string(late[0].delay.site));
  EXPECT_EQ(Position::before, late[0].delay.position);
  EXPECT_EQ(1u, late[0].delay.nth);
  EXPECT_EQ(50ms - 2us, late[0].delay.duration);
}

TEST(LateVisits, of_who_had_to_wait_there_are_behind_the_call) {
  const auto late = LateTrace()
                        .point(1us, 1, lock, {0}, {0}, 0)
                        .point(2us, 0, nap, {0, 1}, {1}, 0)
                        .point(30ms, 0, nap, {0, 1}, {0, 1}, 1)
                        .late();
  ASSERT_EQ(1u, late.size());
  EXPECT_EQ(Position::after, late[0].delay.position);
}

TEST(LateVisits, count_no_time_in_which_another_one_had_the_lock) {
  const auto late = LateTrace()
                        .point(0us, 1, lock, {0, 1}, {1}, 0)
                        .point(20ms, 0, nap, {0}, {0}, 0)
                        .point(60ms, 0, nap, {0, 1}, {0, 1}, 1)
                        .late();
  ASSERT_EQ(1u, late.size());
  EXPECT_EQ(20ms, late[0].delay.duration);
}

TEST(LateVisits, of_a_thread_that_never_began_are_at_its_start) {
  const auto late = LateTrace()
                        .point(0us, 0, create, {0, 1}, {0, 1}, 0)
                        .point(1us, 0, nap, {0, 1}, {1}, 0)
                        .ends(40ms)
                        .without_worker()
                        .late();
  ASSERT_EQ(1u, late.size());
  EXPECT_EQ(Position::start, late[0].delay.position);
  EXPECT_EQ(create, to_string(late[0].delay.site));
  EXPECT_EQ("main.cc:1#1 begins late", late[0].why);
  EXPECT_EQ(40ms, late[0].delay.duration);
}

TEST(LateVisits, are_told_latest_first_and_not_for_what_switches_take) {
  const auto late = LateTrace()
                        .point(0us, 1, lock, {0, 1}, {0, 1}, 0)
                        .point(10ms, 0, nap, {0, 1}, {1}, 1)
                        .point(11ms, 1, "work.cc:9:read", {0, 1}, {0, 1}, 0)
                        .point(12ms, 0, nap, {0, 1}, {1}, 0)
                        .point(41ms, 0, nap, {0, 1}, {0, 1}, 1)
                        .point(41ms + 5us, 1, lock, {0, 1}, {0, 1}, 0)
                        .late();
  ASSERT_EQ(2u, late.size());
  EXPECT_EQ("work.cc:9:read", to_string(late[0].delay.site));
  EXPECT_EQ(lock, to_string(late[1].delay.site));
}

}  // namespace
}  // namespace unflake
