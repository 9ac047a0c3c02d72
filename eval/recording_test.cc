#include "recording.h"

#include <gtest/gtest.h>

#include <iterator>

#include "support/trace_builder.h"

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;

Trace two_threads() {
  TraceBuilder builder;
  builder.thread("main").thread("pool.cc:31#1", "main", 1, 80);
  builder.call("main", "pool.cc:31:pthread_create", 0, 1, 7);
  builder.call("main", "test.cc:9:usleep", 2, 52).asks_for(50);
  builder.call("main", "test.cc:10:pthread_mutex_lock", 53, 54, 0xffff'8000'0000'0001);
  builder.call("pool.cc:31#1", "pool.cc:12:usleep", 3, 23).asks_for(20);
  builder.call("pool.cc:31#1", "pool.cc:13:pthread_mutex_lock", 24, 25, 0xffff'8000'0000'0001);
  Trace trace = builder.trace();
  for (TracedSite& site : trace.sites)
    for (uint16_t api = 0; api < std::size(protocol::api_facts); ++api)
      if (site.name.api == protocol::api_facts[api].name) site.api = api;
  return trace;
}

Recording some_recording() {
  Recording recording;
  recording.program = "a \"name\"\n";
  recording.trace = two_threads();
  recording.failure = {0, 55ms, "main reaches test.cc:10"};
  recording.limits.most = 3s;
  recording.tried = {{"pool.cc:13@pool.cc:31#1=200ms in test", 5, 5}, {"other", 1, 0}};
  return recording;
}

std::vector<std::string> candidates_of(const Recording& recording, Order order) {
  auto candidates = find_candidates(recording.trace, recording.failure, recording.limits);
  arrange(candidates, order, 1);
  std::vector<std::string> keys;
  for (const Candidate& candidate : candidates)
    keys.push_back(key_of(candidate.delay) + " " + candidate.why);
  return keys;
}

TEST(Recording, Suggests_the_same_delays_in_the_same_order_when_it_is_read_back) {
  const Recording before = some_recording();
  const auto after = parse_recording(recording_json(before), "here");
  ASSERT_TRUE(after) << to_string(after.error());
  for (const Order order : {Order::turns, Order::nearest, Order::appearance, Order::random}) {
    ASSERT_FALSE(candidates_of(before, order).empty());
    EXPECT_EQ(candidates_of(before, order), candidates_of(*after, order)) << to_string(order);
  }
}

TEST(Recording, Keeps_what_was_tried) {
  const Recording before = some_recording();
  const auto after = parse_recording(recording_json(before), "here");
  ASSERT_TRUE(after) << to_string(after.error());
  EXPECT_EQ(after->program, before.program);
  EXPECT_EQ(after->failure.how, before.failure.how);
  EXPECT_EQ(after->tried, before.tried);
}

TEST(Recording, Is_written_the_same_when_it_was_read_back) {
  const std::string before = recording_json(some_recording());
  EXPECT_EQ(recording_json(*parse_recording(before, "here")), before);
}

TEST(Recording, That_is_damaged_is_refused_with_the_place) {
  std::string text = recording_json(some_recording());
  text.replace(text.find("\"enter_us\""), 10, "\"enter__s\"");
  const auto read = parse_recording(text, "here");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().where.find("enter_us"), std::string::npos) << read.error().where;
}

TEST(Recording, That_is_cut_off_is_refused) {
  const std::string text = recording_json(some_recording());
  EXPECT_FALSE(parse_recording(text.substr(0, text.size() / 2), "here"));
  EXPECT_FALSE(parse_recording("", "here"));
}

TEST(Recording, Whose_numbers_lead_nowhere_suggests_less_and_does_not_crash) {
  Recording recording = some_recording();
  recording.failure.thread = 77;
  for (TracedThread& thread : recording.trace.threads) thread.parent = thread.process = 99;
  recording.trace.calls.back().site = 1234;
  recording.trace.calls.front().thread = 4321;
  const auto read = parse_recording(recording_json(recording), "here");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_LT(candidates_of(*read, Order::turns).size(),
            candidates_of(some_recording(), Order::turns).size());
}

}  // namespace
}  // namespace unflake::eval
