#include "repro/repro_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "util/json.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

RepairPlace place(const std::string& site, const std::string& thread) {
  const SiteName name = *parse_site(site);
  return {name, {"/project/" + name.file, name.line, "Office::work"}, thread};
}

Fix example_fix() {
  Fix fix;
  fix.repro.test = {"office_test", "Office.Delivers\xff"};
  fix.repro.framework = Framework::gtest;
  fix.repro.target_path = "build/office_test";
  fix.repro.outcome = OutcomeKind::fail;
  fix.repro.signature = "8c7b35ab158e3e23";
  fix.repro.passes_under_plan = true;
  fix.repro.timeout = 10s;
  Intervention watch;
  watch.action = Intervention::Action::watch;
  watch.site = *parse_site("thread end()");
  watch.threads = Intervention::Threads::named;
  watch.thread.text = "office.cc:22#1";
  Intervention hold;
  hold.action = Intervention::Action::hold;
  hold.site = *parse_site("office.cc:45");
  hold.until = 0;
  hold.duration = 10s;
  fix.repro.plan.agent = true;
  fix.repro.plan.interventions = {watch, hold};
  fix.repro.sites.resize(2);
  fix.repro.spawns.resize(2);
  fix.hand_overs = {{place("office.cc:24", "office.cc:22#1"), place("office.cc:45", "main"), 2}};
  fix.runs.under_plan = {0, 20};
  fix.runs.late_after = {0, 5};
  fix.runs.plain = {0, 20};
  fix.runs.schedules = {0, 200};
  fix.runs.waits = 40;
  return fix;
}

std::string changed(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json json = nlohmann::json::parse(fix_json(example_fix()));
  change(json);
  return json.dump();
}

std::string fix_error(const std::string& text) {
  const auto fix = parse_fix(text, "x.json");
  return fix ? "" : to_string(fix.error());
}

TEST(FixJson, Comes_back_as_it_was) {
  const Fix fix = example_fix();
  const auto read = parse_fix(fix_json(fix), "x.json");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->repro.test, fix.repro.test);
  EXPECT_EQ(read->repro.signature, fix.repro.signature);
  ASSERT_EQ(read->repro.plan.interventions.size(), 2u);
  EXPECT_EQ(read->repro.plan.interventions[0].site, fix.repro.plan.interventions[0].site);
  EXPECT_EQ(read->repro.plan.interventions[1].until, 0u);
  ASSERT_EQ(read->hand_overs.size(), 1u);
  EXPECT_EQ(read->hand_overs[0].critical.site, fix.hand_overs[0].critical.site);
  EXPECT_EQ(read->hand_overs[0].barrier.spot, fix.hand_overs[0].barrier.spot);
  EXPECT_EQ(read->hand_overs[0].count, 2u);
  EXPECT_EQ(read->runs.schedules.runs, 200);
  EXPECT_EQ(fix_json(*read), fix_json(fix));
}

TEST(FixJson, Tells_what_is_wrong_and_where) {
  EXPECT_THAT(fix_error(changed([](auto& json) { json["hand_overs"][0]["count"] = 0; })),
              HasSubstr("$.hand_overs[0].count"));
  EXPECT_THAT(
      fix_error(changed([](auto& json) { json["hand_overs"][0]["critical"]["site"] = ""; })),
      HasSubstr("$.hand_overs[0].critical.site"));
  EXPECT_THAT(fix_error(changed([](auto& json) { json["extra"] = 1; })), HasSubstr("extra"));
  EXPECT_THAT(fix_error(changed([](auto& json) { json["format"] = 2; })), HasSubstr("format 2"));
  EXPECT_THAT(fix_error(changed([](auto& json) { json["kind"] = "repro"; })), HasSubstr("$.kind"));
  EXPECT_THAT(fix_error("{"), HasSubstr("not complete"));
  EXPECT_THAT(fix_error("[]"), HasSubstr("not a fix file"));
}

TEST(FixJson, Does_nothing_but_keep_orders) {
  EXPECT_THAT(fix_error(changed([](auto& json) {
                auto& hold = json["repro"]["plan"]["interventions"][1];
                hold["action"] = "delay";
                hold.erase("until");
                hold.erase("count");
              })),
              HasSubstr("watches and holds alone"));
}

TEST(FixJson, Is_not_confused_by_hostile_text) {
  const std::string good = fix_json(example_fix());
  for (size_t cut = 0; cut < good.size(); cut += 7)
    EXPECT_FALSE(parse_fix(good.substr(0, cut), "x"));
  EXPECT_FALSE(parse_fix(std::string(100'000, '['), "x"));
  EXPECT_FALSE(parse_fix(std::string(5 << 20, ' '), "x"));
}

}  // namespace
}  // namespace unflake
