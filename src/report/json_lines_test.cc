#include "report/consumers.h"

#include <gtest/gtest.h>

#include "golden/make_events.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace golden;
using nlohmann::json;

json written(const Event& event) {
  StringSink sink;
  JsonLines(sink).on(event);
  return parse_json_or_throw(sink.text);
}

TEST(JsonLines, Are_one_line_and_one_write_per_event) {
  StringSink sink;
  JsonLines lines(sink);
  lines.on(SessionStarted{});
  lines.on(failing(make_test("a", "b\nc"), 1, assertion("a.cc", 1, "x\ny"), "s", "1\n2\n"));
  lines.on(SessionEnded{});
  EXPECT_EQ(sink.writes.size(), 3u);
  EXPECT_EQ(split_lines(sink.text).size(), 3u);
}

TEST(JsonLines, Name_the_version_of_the_format_first) {
  EXPECT_EQ(written(SessionStarted{})["format"], 1);
}

TEST(JsonLines, Keep_the_output_of_failing_runs_only) {
  RunEnded good = passing(make_test("a", "b"));
  set_output(good, "fine");
  EXPECT_FALSE(written(good).contains("output"));
  EXPECT_EQ(written(good)["output_bytes"], 4);
  EXPECT_EQ(written(failing(make_test("a", "b"), 1, {}, "s", "1\n"))["output"], "1\n");
}

TEST(JsonLines, Give_a_run_that_was_stopped_from_outside_no_outcome) {
  RunEnded run = failing(make_test("a", "b"), 1, assertion("a.cc", 1, "x"), "s", "1\n");
  run.result.outcome.reason = "cancelled";
  run.result.process.end = ProcessResult::End::cancelled;
  const json told = written(run);
  EXPECT_EQ(told["end"], "cancelled");
  EXPECT_EQ(told["duration_us"], 15'200);
  for (const char* key : {"outcome", "reason", "signature", "failures", "output"})
    EXPECT_FALSE(told.contains(key)) << key;
}

TEST(JsonLines, Stay_valid_whatever_a_test_prints) {
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  const json run = written(failing(make_test(every_byte, every_byte), 1,
                                   assertion(every_byte, 1, every_byte), every_byte, every_byte));
  EXPECT_EQ(run["event"], "run_ended");
}

TEST(JsonLines, Are_bounded) {
  const std::string huge(3'000'000, '\x01');
  StringSink sink;
  JsonLines(sink).on(failing(make_test(huge, huge), 1, assertion(huge, 1, huge), huge, huge));
  EXPECT_LT(sink.text.size(), 500'000u);
}

TEST(JsonLines, Name_the_plan_of_a_run_that_had_one) {
  RunEnded run = passing(make_test("a", "b"));
  EXPECT_FALSE(written(run).contains("plan"));
  run.plan.id = "p1";
  EXPECT_EQ(written(run)["plan"], "p1");
}

TEST(JsonLines, Leave_out_what_only_displays_need) {
  StringSink sink;
  JsonLines lines(sink);
  lines.on(Ticked{});
  lines.on(StatusRequested{});
  EXPECT_EQ(sink.text, "");
}

TEST(JsonLines, Tell_slow_runs_and_the_slowest_tests) {
  const json slow = written(RunSlow{make_test("a", "b"), 2, 60s});
  EXPECT_EQ(
      slow,
      (json{{"event", "run_slow"}, {"test", "a:b"}, {"attempt", 2}, {"after_us", 60'000'000}}));
  SessionEnded ended;
  EXPECT_FALSE(written(ended).contains("slowest"));
  ended.slowest = {{make_test("a", "b"), 3s}};
  EXPECT_EQ(written(ended)["slowest"],
            json::array({{{"test", "a:b"}, {"duration_us", 3'000'000}}}));
}

}  // namespace
}  // namespace unflake
