#include "model/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Conditions, Every_field_is_in_the_one_list) {
  const auto& [one_core, cpu_share, competitors] = Conditions{true, 0.5, 3};  // all that there are
  std::set<std::string> names;
  Conditions listed;
  for_each_field(listed, [&](const ConditionField& field, auto& value) {
    names.insert(field.name);
    value = static_cast<std::remove_reference_t<decltype(value)>>(field.most);
  });
  EXPECT_EQ(names.size(), 3u);
  EXPECT_EQ(listed, (Conditions{one_core, 1, 1000}));
  EXPECT_NE(cpu_share, listed.cpu_share);
  EXPECT_NE(competitors, listed.competitors);
}

TEST(Conditions, Are_told_in_words) {
  EXPECT_THAT(scarcity_words({}, &ConditionField::in_short), IsEmpty());
  EXPECT_THAT(scarcity_words({true, 0.2, 1}, &ConditionField::in_short),
              ElementsAre("one core", "20 % of the time", "1 busy neighbour"));
  EXPECT_THAT(scarcity_words({false, 1, 4}, &ConditionField::in_short),
              ElementsAre("4 busy neighbours"));
  EXPECT_THAT(scarcity_words({true, 0.05, 0}, &ConditionField::as_a_clause),
              ElementsAre("all threads share one core", "it may run for 5 % of the time"));
}

TEST(Conditions, Have_a_text_of_their_own) {
  EXPECT_EQ(to_string(Conditions{true, 0.5, 2}), "one_core=true cpu_share=0.5 competitors=2");
}

TEST(Conditions, Are_an_object_in_JSON) {
  EXPECT_EQ(json_of<nlohmann::json>({true, 0.5, 2}),
            (nlohmann::json{{"one_core", true}, {"cpu_share", 0.5}, {"competitors", 2}}));
}

}  // namespace
}  // namespace unflake
