#include "repro/repro_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Action = Intervention::Action;
using Position = Intervention::Position;
using Threads = Intervention::Threads;
using Visits = Intervention::Visits;

Intervention late_start() {
  Intervention delay;
  delay.site = {"", "office.cc", 22, "Office::send", 0, "pthread_create", 1};
  delay.position = Position::start;
  delay.threads = Threads::named;
  delay.thread = {"office.cc:22#1", 0x1234, 0x5678};
  delay.duration = 200ms;
  return delay;
}

std::vector<Intervention> interventions() {
  Intervention watch = late_start();
  watch.action = Action::watch;
  watch.position = Position::after;
  watch.duration = {};
  Intervention hold = late_start();
  hold.action = Action::hold;
  hold.duration = 1234567us;
  hold.threads = Threads::in_class;
  hold.thread.text = "server!pool.cc:31~4f1a#2";
  hold.until = 1;
  hold.count = 3;
  Intervention third = late_start();
  third.site = {"", "", 0, "Queue::pop", 0, "", 1};
  third.position = Position::before;
  third.threads = Threads::any;
  third.thread = {};
  third.visits = Visits::from_nth;
  third.nth = 7;
  third.anchor = 1;
  third.executable = "server";
  Intervention quarter = late_start();
  quarter.action = Action::scale_time;
  quarter.site.api = "poll";
  quarter.position = Position::before;
  quarter.duration = 250ms;
  return {late_start(), watch, hold, third, quarter};
}

Repro example() {
  Repro repro;
  repro.test = {"office_test", "Office.Delivers"};
  repro.framework = Framework::gtest;
  repro.target_path = "build/office_test";
  repro.target_argv = {"--slow"};
  repro.failure = {FailureKind::assertion, "office.cc", 45, "", "delivered() == 1", "Which is: 0"};
  repro.signature = signature_of(repro.failure);
  repro.failing_line = {"Office::TestBody", 5, "EXPECT_EQ(delivered(), 1);", "sleep();", "}"};
  repro.plan.id = "p1";
  repro.plan.agent = true;
  repro.plan.hold_exit = false;
  repro.plan.groups_off = {"lock"};
  repro.plan.extra_functions = {"Queue::pop"};
  repro.plan.interventions = interventions();
  repro.sites = {{"Office::send", 1, "thread_ = start();", "{", "}"},
                 {"Office::send", -1, "", "", ""},
                 {},
                 {},
                 {}};
  repro.spawns = {{"Office::send", 1, "thread_ = start();", "{", "}"}, {}, {}, {}, {}};
  repro.conditions = {true, 0.25, 3};
  repro.with_plan = {19, 20};
  repro.under_control = Count{5, 5};
  repro.without_plan = {1, 30};
  repro.candidates = 4;
  repro.slack = Slack{8ms, 8500us};
  repro.doses = {{1ms, {0, 10}}, {10ms, {9, 10}}};
  repro.timeout = 12s;
  repro.plausibility = Plausibility::risk;
  repro.machine_lateness = MachineLateness{300us, 20ms};
  repro.was_seen = true;
  repro.strategy = "guided";
  repro.reason = "the carrier may be late";
  repro.seed = UINT64_MAX;
  repro.search_runs = 77;
  repro.commit = "0123abc";
  repro.machine = "ci-7";
  repro.unflake_version = "0.1.0";
  repro.found = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + 12h + 34min + 56s;
  return repro;
}

// The example with one piece of its text replaced.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = repro_json(example());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Error error_of(const std::string& text) {
  const auto repro = parse_repro(text, "r.json");
  EXPECT_FALSE(repro);
  return repro ? Error() : repro.error();
}

void expect_wrong(const std::string& from, const std::string& to, const std::string& where) {
  const Error error = error_of(edited(from, to));
  EXPECT_EQ(error.kind, ErrorKind::usage);
  EXPECT_EQ(error.where, "r.json: " + where) << error.what;
  EXPECT_FALSE(error.what.empty());
  EXPECT_FALSE(error.next.empty());
}

TEST(ReproJson, Everything_comes_back) {
  const Repro before = example();
  const auto after = parse_repro(repro_json(before), "r.json");
  ASSERT_TRUE(after) << to_string(after.error());
  EXPECT_EQ(repro_json(*after), repro_json(before));
  EXPECT_EQ(after->test, before.test);
  EXPECT_EQ(after->framework, before.framework);
  EXPECT_EQ(after->target_path, before.target_path);
  EXPECT_EQ(after->target_argv, before.target_argv);
  EXPECT_EQ(after->failure, before.failure);
  EXPECT_EQ(after->failing_line, before.failing_line);
  EXPECT_EQ(after->signature, before.signature);
  EXPECT_EQ(after->sites, before.sites);
  EXPECT_EQ(after->spawns, before.spawns);
  EXPECT_EQ(after->conditions, before.conditions);
  EXPECT_EQ(after->with_plan, before.with_plan);
  EXPECT_EQ(after->under_control, before.under_control);
  EXPECT_EQ(after->slack, before.slack);
  EXPECT_EQ(after->doses, before.doses);
  EXPECT_EQ(after->timeout, before.timeout);
  EXPECT_EQ(after->plausibility, before.plausibility);
  EXPECT_EQ(after->machine_lateness, before.machine_lateness);
  EXPECT_EQ(after->was_seen, before.was_seen);
  EXPECT_EQ(after->seed, before.seed);
  EXPECT_EQ(after->found, before.found);
}

TEST(ReproJson, A_file_from_before_failures_were_judged_is_read) {
  Repro old = example();
  old.plausibility.reset();
  old.machine_lateness.reset();
  std::string text = repro_json(old);
  const size_t at = text.find(",\n  \"was_seen\": true");
  ASSERT_NE(at, std::string::npos) << text;
  text.erase(at, std::string(",\n  \"was_seen\": true").size());
  const auto repro = parse_repro(text, "r.json");
  ASSERT_TRUE(repro) << to_string(repro.error());
  EXPECT_FALSE(repro->plausibility);
  EXPECT_FALSE(repro->machine_lateness);
  EXPECT_FALSE(repro->was_seen);
  EXPECT_FALSE(repro->is_margin());
}

TEST(ReproJson, An_unknown_plausibility_is_an_error) {
  expect_wrong("\"risk\"", "\"bad luck\"", "$.measured.plausibility");
}

TEST(ReproJson, The_plan_comes_back_without_what_changes_with_a_build) {
  const auto after = parse_repro(repro_json(example()), "r.json");
  ASSERT_TRUE(after) << to_string(after.error());
  ASSERT_EQ(after->plan.interventions.size(), 5u);
  const Intervention& delay = after->plan.interventions[0];
  EXPECT_EQ(delay.site, late_start().site);
  EXPECT_EQ(delay.position, Position::start);
  EXPECT_EQ(delay.duration, 200ms);
  EXPECT_EQ(delay.thread, (ThreadName{"office.cc:22#1", 0, 0}));
  const Intervention& hold = after->plan.interventions[2];
  EXPECT_EQ(hold.threads, Threads::in_class);
  EXPECT_EQ(hold.thread.text, "server!pool.cc:31~4f1a#*");
  EXPECT_EQ(hold.duration, 1234567us);
  EXPECT_EQ(hold.until, 1u);
  EXPECT_EQ(hold.count, 3u);
  const Intervention& third = after->plan.interventions[3];
  EXPECT_EQ(third.threads, Threads::any);
  EXPECT_EQ(third.visits, Visits::from_nth);
  EXPECT_EQ(third.nth, 7u);
  EXPECT_EQ(third.anchor, 1u);
  EXPECT_EQ(third.executable, "server");
  const Intervention& quarter = after->plan.interventions[4];
  EXPECT_EQ(quarter.action, Action::scale_time);
  EXPECT_EQ(quarter.duration, 250ms);
  EXPECT_FALSE(after->plan.hold_exit);
}

Repro under_control() {
  Repro repro = example();
  repro.plan.interventions.clear();
  repro.sites.clear();
  repro.spawns.clear();
  Schedule schedule;
  schedule.seed = UINT64_MAX;
  schedule.decisions = {{3, 2}, {40, 0}};
  schedule.stall = 5ms;
  schedule.accesses = {{"", "", 0, "_ZN4Ring4pushEi", 0x3c, "", 1}};
  repro.plan.schedule = schedule;
  repro.digest = UINT64_MAX - 1;
  repro.not_repeatable = "accept";
  return repro;
}

TEST(ReproJson, A_schedule_comes_back) {
  const auto after = parse_repro(repro_json(under_control()), "r.json");
  ASSERT_TRUE(after) << to_string(after.error());
  ASSERT_TRUE(after->plan.schedule);
  EXPECT_EQ(to_string(*after->plan.schedule), to_string(*under_control().plan.schedule));
  EXPECT_EQ(after->plan.schedule->seed, UINT64_MAX);
  EXPECT_EQ(after->plan.schedule->accesses, under_control().plan.schedule->accesses);
  EXPECT_EQ(after->digest, UINT64_MAX - 1);
  EXPECT_EQ(after->not_repeatable, "accept");
}

TEST(ReproJson, What_a_sampler_needs_comes_back) {
  Repro repro = under_control();
  Schedule& before = *repro.plan.schedule;
  before.sampler = Sampler::surw;
  before.depth = 2;
  before.length = 77;
  before.selected = {UINT64_MAX};
  before.remaining = {1, 2, 3};
  const auto after = parse_repro(repro_json(repro), "r.json");
  ASSERT_TRUE(after) << to_string(after.error());
  EXPECT_EQ(after->plan.schedule->sampler, Sampler::surw);
  EXPECT_EQ(after->plan.schedule->depth, 2);
  EXPECT_EQ(after->plan.schedule->length, 77u);
  EXPECT_EQ(after->plan.schedule->selected, before.selected);
  EXPECT_EQ(after->plan.schedule->remaining, before.remaining);
}

TEST(ReproJson, A_wrong_schedule_is_told_with_its_place) {
  const std::string whole = repro_json(under_control());
  const auto place_of_wrong = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    return error_of(text.replace(text.find(from), from.size(), to)).where;
  };
  EXPECT_EQ(place_of_wrong("\"stay\"", "\"dance\""), "r.json: $.plan.schedule.sampler");
  EXPECT_EQ(place_of_wrong("\"point\": 3", "\"point\": -3"),
            "r.json: $.plan.schedule.decisions[0].point");
  EXPECT_EQ(place_of_wrong("\"5ms\"", "\"5\""), "r.json: $.plan.schedule.stall");
  EXPECT_EQ(place_of_wrong("\"digest\"", "\"digets\""), "r.json: $.plan.schedule");
}

TEST(ReproJson, Is_readable_by_people) {
  const std::string text = repro_json(example());
  for (const char* part :
       {"\"format\": 3", "\"office.cc:22:pthread_create\"", "\"office.cc:22#1\"", "\"200ms\"",
        "\"1234567us\"", "\"rate\": 0.95", "\"interval_95\"", "\"2026-03-01T12:34:56Z\""})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(ReproJson, Names_that_are_no_UTF_8_come_back) {
  Repro repro = example();
  repro.test.name = "caf\xe9";
  const auto after = parse_repro(repro_json(repro), "r.json");
  ASSERT_TRUE(after) << to_string(after.error());
  EXPECT_EQ(after->test.name, "caf\xe9");
}

TEST(ReproJson, A_newer_format_asks_for_a_newer_unflake) {
  const Error error = error_of(edited("\"format\": 3", "\"format\": 4"));
  EXPECT_THAT(error.what, HasSubstr("format 4"));
  EXPECT_THAT(error.next, HasSubstr("newer unflake"));
}

TEST(ReproJson, Orders_and_factors_are_kept) {
  Repro repro = *parse_repro(edited("\"format\": 3", "\"format\": 3"), "r.json");
  EXPECT_FALSE(repro.is_plain());
  repro.order = RecordedOrder{{"B.Polluter", "\xff"},
                              {Arrangement::Kind::shuffled, 7},
                              {"S.Setter"},
                              {{"C.Cleaner", "c.cc", 3, 5, {"TEST(C, Cleaner) {", "}"}}}};
  repro.factor = "time zone";
  repro.conditions.time_zone = "UTC0";
  repro.conditions.twins = 2;
  repro.conditions.no_network = true;
  const auto again = parse_repro(repro_json(repro), "r.json");
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->order, repro.order);
  EXPECT_EQ(again->factor, "time zone");
  EXPECT_EQ(again->conditions, repro.conditions);
  EXPECT_TRUE(again->is_plain());
  EXPECT_FALSE(again->plan.agent);
}

TEST(ReproJson, The_first_format_is_still_read) {
  EXPECT_TRUE(parse_repro(edited("\"format\": 3", "\"format\": 1"), "r.json"));
}

TEST(ReproJson, A_file_of_another_kind_is_told) {
  for (const char* text : {"{}", "[]", "1", "null", "\"text\"", "{\"format\": \"1\"}"})
    EXPECT_THAT(error_of(text).what, HasSubstr("not a repro file")) << text;
}

TEST(ReproJson, A_file_cut_anywhere_is_an_error) {
  const std::string whole = repro_json(example());
  for (size_t size = 0; size + 2 < whole.size(); size += 41)
    EXPECT_FALSE(parse_repro(whole.substr(0, size), "r.json")) << size;
}

TEST(ReproJson, No_value_of_another_type_crashes_the_reader) {
  const std::string whole = repro_json(example());
  for (size_t at = whole.find(": "); at != std::string::npos; at = whole.find(": ", at + 1)) {
    const size_t end = whole.find_first_of(",\n", at);
    for (const char* other : {"null", "[]", "1e300", "\"\\u0000\""})
      (void)parse_repro(whole.substr(0, at + 2) + other + whole.substr(end), "r.json");
  }
}

TEST(ReproJson, Wrong_values_are_told_with_their_place) {
  expect_wrong("\"200ms\"", "\"-200ms\"", "$.plan.interventions[0].duration");
  expect_wrong("\"200ms\"", "200", "$.plan.interventions[0].duration");
  expect_wrong("\"200ms\"", "\"400d\"", "$.plan.interventions[0].duration");
  expect_wrong("\"action\": \"delay\"", "\"action\": \"explode\"",
               "$.plan.interventions[0].action");
  expect_wrong("\"action\": \"delay\"", "\"actoin\": \"delay\"", "$.plan.interventions[0]");
  expect_wrong("\"until\": 1", "\"until\": 9", "$.plan.interventions[2].until");
  expect_wrong("\"until\": 1", "\"until\": 0", "$.plan.interventions[2].until");
  expect_wrong("\"anchor\": 1", "\"anchor\": 3", "$.plan.interventions[3].anchor");
  expect_wrong("\"anchor\": 1", "\"anchor\": -1", "$.plan.interventions[3].anchor");
  expect_wrong("\"nth\": 7", "\"nth\": 0", "$.plan.interventions[3].nth");
  expect_wrong("\"nth\": 7", "\"nth\": 18446744073709551615", "$.plan.interventions[3].nth");
  expect_wrong("office.cc:22:pthread_create", "office.cc:22:pthread_creat",
               "$.plan.interventions[0].site");
  expect_wrong("\"cpu_share\": 0.25", "\"cpu_share\": 0", "$.conditions.cpu_share");
  expect_wrong("\"competitors\": 3", "\"competitors\": 1000000000", "$.conditions.competitors");
  expect_wrong("\"12000ms\"", "\"99999h\"", "$.timeout");
  expect_wrong("\"12000ms\"", "\"0s\"", "$.timeout");
  expect_wrong("\"failures\": 19", "\"failures\": 21", "$.measured.with_plan.failures");
  expect_wrong("\"outcome\": \"fail\"", "\"outcome\": \"sad\"", "$.outcome");
  expect_wrong("\"framework\": \"gtest\"", "\"framework\": \"junit\"", "$.test.framework");
  expect_wrong("2026-03-01T12", "2026-13-01T12", "$.found.at");
  expect_wrong("\"timeout\":", "\"time\":", "$.timeout");
}

TEST(ReproJson, Too_many_interventions_are_refused) {
  Repro repro = example();
  repro.plan.interventions.assign(1001, late_start());
  EXPECT_EQ(error_of(repro_json(repro)).where, "r.json: $.plan.interventions");
}

TEST(ReproJson, Bytes_that_are_no_UTF_8_are_refused) {
  EXPECT_THAT(error_of(edited("Which is: 0", "Which is: \xff")).what, HasSubstr("UTF-8"));
}

TEST(ReproJson, Deep_nesting_is_refused) {
  EXPECT_THAT(error_of(std::string(1 << 20, '[')).what, HasSubstr("nested"));
  EXPECT_THAT(
      error_of("{\"format\": 1, \"x\": " + std::string(100, '[') + std::string(100, ']') + "}")
          .what,
      HasSubstr("nested"));
}

TEST(ReproJson, A_huge_file_is_refused_unread) {
  EXPECT_THAT(error_of(std::string(largest_repro + 1, ' ')).what, HasSubstr("at most 4 MiB"));
}

}  // namespace
}  // namespace unflake
