#include "model/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <vector>

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Conditions, Every_field_is_in_the_one_list) {
  // All that there are: another one does not compile.
  const auto& [one_core, cpu_share, competitors, addresses, environment_bytes, locale, time_zone,
               clock, umask, open_files, free_disk_mib, other_temporary, other_folder, twins,
               random_seed, hash_seed, no_network, memory_fill, private_files, cores_told] =
      Conditions{};
  const std::vector<const void*> fields{
      &one_core,      &cpu_share,       &competitors,  &addresses,     &environment_bytes,
      &locale,        &time_zone,       &clock,        &umask,         &open_files,
      &free_disk_mib, &other_temporary, &other_folder, &twins,         &random_seed,
      &hash_seed,     &no_network,      &memory_fill,  &private_files, &cores_told};
  std::set<std::string> names;
  std::set<const void*> listed;
  Conditions all;
  for_each_field(all, [&](const ConditionField& field, auto& value) {
    names.insert(field.name);
    listed.insert(&value);
  });
  EXPECT_EQ(names.size(), fields.size());
  EXPECT_EQ(listed.size(), fields.size());
}

TEST(Conditions, What_is_other_than_usual_is_told_and_the_rest_is_not) {
  Conditions conditions;
  conditions.time_zone = "UTC0";
  conditions.twins = 1;
  EXPECT_THAT(scarcity_words(conditions, &ConditionField::in_short),
              ElementsAre("time zone UTC0", "1 copy of it at once"));
  EXPECT_EQ(to_string(conditions),
            "one_core=false cpu_share=1 competitors=0 time_zone=UTC0 twins=1");
  EXPECT_EQ(json_of<nlohmann::json>(conditions), (nlohmann::json{{"one_core", false},
                                                                 {"cpu_share", 1.0},
                                                                 {"competitors", 0},
                                                                 {"time_zone", "UTC0"},
                                                                 {"twins", 1}}));
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
