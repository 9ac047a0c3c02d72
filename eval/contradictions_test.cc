#include "contradictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake::eval {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json explanation_of(const char* cause) {
  return {{"causes", {{{"cause", cause}}}},
          {"critical", json::object()},
          {"wait", {{"times", 1}}},
          {"experiments", {"late before it fails"}},
          {"proof", {{"is_shown", true}, {"kept", {3, 3}}, {"reversed", {3, 3}}}}};
}

TEST(Contradictions, Are_none_where_experiments_agree_or_nobody_asked) {
  json explanation = explanation_of("async wait");
  EXPECT_THAT(contradictions_in(explanation), IsEmpty());
  explanation["proof"]["late_as_a_whole"] = {0, 2};
  explanation["proof"]["longer_wait"] = {2, 2};
  EXPECT_THAT(contradictions_in(explanation), IsEmpty());
}

TEST(Contradictions, Are_seen_in_orders_that_do_not_decide) {
  json explanation = explanation_of("ordering");
  explanation["proof"]["reversed"] = {0, 3};
  EXPECT_THAT(contradictions_in(explanation), ElementsAre(HasSubstr("reversed")));
  explanation["critical"] = nullptr;
  EXPECT_THAT(contradictions_in(explanation), IsEmpty());
}

TEST(Contradictions, Are_seen_in_each_category_that_was_asked_for) {
  json async = explanation_of("async wait");
  async["proof"]["late_as_a_whole"] = {2, 2};
  EXPECT_THAT(contradictions_in(async), ElementsAre(HasSubstr("as a whole")));
  json lost = explanation_of("lost wake-up");
  lost["proof"]["waiting_first"] = {1, 2};
  EXPECT_THAT(contradictions_in(lost), ElementsAre(HasSubstr("lost wake-up")));
  EXPECT_THAT(contradictions_in(explanation_of("exact timing")), ElementsAre(HasSubstr("order")));
}

TEST(Contradictions, Are_seen_where_unknown_does_not_say_what_was_tried) {
  json explanation = explanation_of("unknown");
  EXPECT_THAT(contradictions_in(explanation), IsEmpty());
  explanation["experiments"] = json::array();
  EXPECT_THAT(contradictions_in(explanation), ElementsAre(HasSubstr("unknown")));
}

}  // namespace
}  // namespace unflake::eval
