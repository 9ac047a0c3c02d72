#include "cli/inject.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Action = Intervention::Action;
using Position = Intervention::Position;
using Threads = Intervention::Threads;
using Visits = Intervention::Visits;

Trace known_threads() {
  Trace trace;
  trace.images = {{"/home/me/queue_test", "", true}, {"/home/me/server", "", true}};
  trace.processes.resize(2);
  trace.processes[0].executable = 0;
  trace.processes[1].executable = 1;
  for (const auto& [text, name, of_class, process] :
       {std::tuple("main", 1, 1, 0), std::tuple("pool.cc:31#1", 71, 7, 0),
        std::tuple("pool.cc:31#2", 72, 7, 0), std::tuple("libpool.so!pool.cc:9#1", 81, 8, 0),
        std::tuple("server!main", 1, 1, 1)}) {
    TracedThread thread;
    thread.process = static_cast<uint32_t>(process);
    thread.name = {text, static_cast<uint64_t>(name), static_cast<uint64_t>(of_class)};
    trace.threads.push_back(thread);
  }
  return trace;
}

Result<std::vector<NamedIntervention>> delays(const std::vector<std::string>& texts) {
  return parse_interventions({texts, {}, {}, {}, {}}, known_threads());
}

Intervention delay(const std::string& text) {
  const auto parsed = delays({text});
  EXPECT_TRUE(parsed) << text << ": " << to_string(parsed.error());
  return parsed ? parsed->back().intervention : Intervention();
}

TEST(InjectWords, A_delay_names_site_thread_and_duration) {
  const Intervention what = delay("queue.cc:57:read@main=200ms");
  EXPECT_EQ(to_string(what.site), "queue.cc:57:read");
  EXPECT_EQ(what.threads, Threads::named);
  EXPECT_EQ(what.thread.name, 1u);
  EXPECT_EQ(what.duration, 200ms);
  EXPECT_EQ(what.position, Position::before);
  EXPECT_EQ(what.visits, Visits::every);
}

TEST(InjectWords, Without_a_thread_every_thread_is_meant) {
  EXPECT_EQ(delay("queue.cc:57=1s").threads, Threads::any);
  EXPECT_EQ(delay("queue.cc:57@*=1s").threads, Threads::any);
}

TEST(InjectWords, A_star_means_the_class) {
  const Intervention what = delay("queue.cc:57@pool.cc:31#*=1s");
  EXPECT_EQ(what.threads, Threads::in_class);
  EXPECT_EQ(what.thread.thread_class, 7u);
}

TEST(InjectWords, A_thread_of_another_program_is_looked_for_there) {
  EXPECT_EQ(delay("queue.cc:57@server!main=1s").executable, "server");
  EXPECT_EQ(delay("queue.cc:57@main=1s").executable, "queue_test");
}

TEST(InjectWords, A_thread_that_a_library_started_is_looked_for_in_the_program_that_loads_it) {
  EXPECT_EQ(delay("queue.cc:57@libpool.so!pool.cc:9#1=1s").executable, "queue_test");
}

TEST(InjectWords, The_other_side_of_a_call_can_be_meant) {
  EXPECT_EQ(delay("q.cc:5:pthread_cond_wait:after@main=1s").position, Position::after);
  EXPECT_EQ(delay("q.cc:5:pthread_create:start=1s").position, Position::start);
  EXPECT_EQ(delay("q.cc:5:read:before=1s").position, Position::before);
}

TEST(InjectWords, Visits_can_be_chosen) {
  EXPECT_EQ(delay("q.cc:5=1s at visit 3").visits, Visits::only_nth);
  EXPECT_EQ(delay("q.cc:5=1s at visit 3").nth, 3u);
  EXPECT_EQ(delay("q.cc:5=1s from visit 12").visits, Visits::from_nth);
  EXPECT_EQ(delay("q.cc:5=1s halving").visits, Visits::halving);
}

TEST(InjectWords, An_anchor_becomes_a_watch) {
  const auto parsed = delays({"q.cc:5=1s at visit 2 once net.cc:8:listen@main"});
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ((*parsed)[0].intervention.action, Action::watch);
  EXPECT_EQ(to_string((*parsed)[0].intervention.site), "net.cc:8:listen");
  EXPECT_EQ((*parsed)[1].intervention.anchor, 0u);
  EXPECT_EQ((*parsed)[1].intervention.nth, 2u);
}

TEST(InjectWords, Two_delays_may_share_an_anchor) {
  const auto parsed = delays({"a.cc:1=1s once b.cc:2", "a.cc:3=1s once b.cc:2"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->size(), 3u);
}

TEST(InjectWords, An_operator_may_have_signs_of_equality) {
  EXPECT_EQ(delay("Foo::operator==()@main=5ms").site.function, "Foo::operator==");
  EXPECT_EQ(delay("Foo::operator=()=5ms once Foo::operator=()").site.function, "Foo::operator=");
}

Intervention hold(const std::string& text) {
  const auto parsed = parse_interventions({{}, {text}, {}, {}, {}}, known_threads());
  EXPECT_TRUE(parsed) << text << ": " << to_string(parsed.error());
  return parsed ? parsed->back().intervention : Intervention();
}

TEST(InjectWords, A_hold_waits_for_another_site) {
  const Intervention what = hold("Queue::pop()@main until Queue::push()@pool.cc:31#*");
  EXPECT_EQ(what.action, Action::hold);
  EXPECT_EQ(what.until, 0u);
  EXPECT_EQ(what.count, 1u);
  EXPECT_EQ(what.duration, 5s);
}

TEST(InjectWords, A_hold_may_be_for_one_visit) {
  const Intervention what = hold("q.cc:5@main at visit 3 until q.cc:9 x 2 for 1s");
  EXPECT_EQ(what.visits, Visits::only_nth);
  EXPECT_EQ(what.nth, 3u);
  EXPECT_EQ(what.count, 2u);
  EXPECT_EQ(what.duration, 1s);
  EXPECT_EQ(to_string(what), "q.cc:5@main at visit 3 until ? x 2 for 1000ms");
}

Result<std::vector<NamedIntervention>> order(const std::string& text) {
  return parse_interventions({{}, {}, {}, {}, {}, {text}}, known_threads());
}

TEST(InjectWords, An_order_names_the_visits_of_both_sides) {
  const auto parsed = order("Queue::pop()@main visit 2 after q.cc:7:pthread_cond_signal visit 3");
  ASSERT_TRUE(parsed) << to_string(parsed.error());
  ASSERT_EQ(parsed->size(), 2u);
  const Intervention &passed = parsed->at(0).intervention, &waits = parsed->at(1).intervention;
  EXPECT_EQ(passed.action, Action::watch);
  EXPECT_EQ(passed.position, Intervention::Position::after);
  EXPECT_EQ(waits.action, Action::hold);
  EXPECT_EQ(waits.visits, Visits::only_nth);
  EXPECT_EQ(waits.nth, 2u);
  EXPECT_EQ(waits.count, 3u);
  EXPECT_EQ(waits.until, 0u);
  EXPECT_EQ(waits.thread.text, "main");
}

TEST(InjectWords, What_is_only_reached_has_no_other_side) {
  using Position = Intervention::Position;
  EXPECT_EQ(order("q.cc:5 after q.cc:7")->at(0).intervention.position, Position::before);
  EXPECT_EQ(order("q.cc:5 after exit()")->at(0).intervention.position, Position::before);
  EXPECT_EQ(order("q.cc:5 after f+0x3c")->at(0).intervention.position, Position::after);
  EXPECT_EQ(order("q.cc:5 after q.cc:7:read:before")->at(0).intervention.position,
            Position::before);
  EXPECT_EQ(order("q.cc:5 after q.cc:7")->at(1).intervention.visits, Visits::every);
}

TEST(InjectWords, A_wrong_order_is_told) {
  for (const char* text : {"q.cc:5", "q.cc:5 before q.cc:7", "q.cc:5 visit 0 after q.cc:7",
                           "q.cc:5 after q.cc:7 visit often"}) {
    const auto parsed = order(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().what, "this is not an order") << text;
  }
}

TEST(InjectWords, A_factor_scales_the_times_of_a_site) {
  for (const char* text : {"q.cc:5:poll@main=0.25", "q.cc:5:poll@main=25%"}) {
    const auto parsed = parse_interventions({{}, {}, {}, {}, {text}}, known_threads());
    ASSERT_TRUE(parsed) << text;
    const Intervention& what = parsed->back().intervention;
    EXPECT_EQ(what.action, Action::scale_time);
    EXPECT_EQ(what.duration, 250ms);
    EXPECT_EQ(to_string(what), "q.cc:5:poll@main=25%");
  }
}

TEST(InjectWords, What_is_no_factor_is_refused) {
  for (const char* text : {"q.cc:5:poll=", "q.cc:5:poll=-1", "q.cc:5:poll=5ms", "q.cc:5:poll=1e9",
                           "q.cc:5:poll=nan", "q.cc:5:poll=50% at visit 2", "q.cc:5:poll"})
    EXPECT_FALSE(parse_interventions({{}, {}, {}, {}, {text}}, known_threads())) << text;
}

TEST(InjectWords, A_hold_has_a_count_and_a_bound) {
  const Intervention what = hold("a.cc:1 until b.cc:2 x 3 for 250ms");
  EXPECT_EQ(what.count, 3u);
  EXPECT_EQ(what.duration, 250ms);
}

TEST(InjectWords, What_is_not_understood_says_what_would_be) {
  for (const char* text : {"queue.cc:57", "queue.cc:57=", "=5ms", "queue.cc:57=5ms at visit 0",
                           "queue.cc:57=5ms twice", "queue.cc:57@nobody=5ms"}) {
    const auto parsed = delays({text});
    ASSERT_FALSE(parsed) << text;
    EXPECT_FALSE(parsed.error().next.empty()) << text;
  }
}

TEST(InjectWords, A_number_without_a_unit_is_refused) {
  const InjectWords all[] = {{{"queue.cc:57=50"}, {}, {}, {}, {}},
                             {{}, {"a.cc:1 until b.cc:2 for 50"}, {}, {}, {}},
                             {{}, {}, {"queue.cc:57:poll=50"}, {}, {}}};
  for (const InjectWords& words : all) {
    const auto parsed = parse_interventions(words, known_threads());
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().next, "write 50ms or 50s");
  }
  EXPECT_TRUE(delays({"queue.cc:57=0"}));
}

TEST(InjectWords, An_unknown_thread_is_answered_with_the_ones_there_are) {
  const auto parsed = delays({"queue.cc:57@pool.cc:31#3=5ms"});
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().next.find("pool.cc:31#2"), std::string::npos);
}

}  // namespace
}  // namespace unflake
