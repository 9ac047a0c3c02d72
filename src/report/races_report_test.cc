#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/search_text.h"

namespace unflake {
namespace {

using testing::HasSubstr;
using testing::Not;

RaceReport report_of_one() {
  RaceReport report;
  report.test = {"shop", "Shop.sells"};
  report.answer = RaceReport::Answer::found;
  report.runs = 20;
  report.orders = 7;
  report.threads = 3;
  report.access_sites = 2;
  Race race;
  race.variable = "shop.sold";
  race.type = "Shop";
  race.runs = 12;
  race.first = {"shop.cc:9#1", true, 4, Race::Manner::plain, {}, "shop.cc:5 in sell", {}};
  race.second = {"shop.cc:9#2", false, 4, Race::Manner::not_told, {}, "shop.cc:6 in count", {}};
  report.races.push_back(race);
  return report;
}

TEST(RacesReport, Tells_what_who_and_where_and_in_how_many_runs) {
  const std::string text = races_text(report_of_one(), Style(false));
  EXPECT_THAT(text, HasSubstr("shop:Shop.sells: 1 data race in 20 runs under 7 different orders"));
  EXPECT_THAT(text, HasSubstr("shop.sold (Shop), in 12 of 20 runs"));
  EXPECT_THAT(text, HasSubstr("write of 4 bytes by shop.cc:9#1 at shop.cc:5 in sell"));
  EXPECT_THAT(text, HasSubstr("an atomic load: the instruction does not tell"));
  EXPECT_THAT(text, HasSubstr("not seen: accesses by system libraries"));
}

TEST(RacesReport, Says_what_was_left_out) {
  RaceReport report = report_of_one();
  report.races.clear();
  report.answer = RaceReport::Answer::none;
  report.guarded_accesses = 3;
  report.hot_accesses = {"spin+0x3c"};
  report.cut_runs = 2;
  const std::string text = races_text(report, Style(false));
  EXPECT_THAT(text, HasSubstr("NO RACES"));
  EXPECT_THAT(text, HasSubstr("3 left out that always hold a common lock"));
  EXPECT_THAT(text, HasSubstr("spin+0x3c comes more than 100000 times"));
  EXPECT_THAT(text, HasSubstr("2 runs were very long"));
}

TEST(RacesReport, Names_from_tests_are_made_safe) {
  RaceReport report = report_of_one();
  report.races[0].first.thread = report.races[0].variable = "a\033[31m\nb";
  EXPECT_THAT(races_text(report, Style(false)), Not(HasSubstr("\033")));
  EXPECT_THAT(races_json(report), Not(HasSubstr("\\u001b")));
}

TEST(RacesReport, As_JSON) {
  const auto json = nlohmann::json::parse(races_json(report_of_one()));
  EXPECT_EQ(json["format"], "unflake-races");
  EXPECT_EQ(json["answer"], "found");
  const auto& race = json["races"][0];
  EXPECT_EQ(race["variable"], "shop.sold");
  EXPECT_EQ(race["region"], nullptr);
  EXPECT_EQ(race["accesses"][0]["kind"], "write");
  EXPECT_EQ(race["accesses"][1]["manner"], "not_told");
}

}  // namespace
}  // namespace unflake
