#include "app/agent_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using testing::SizeIs;
using Purpose = TrialEnded::Purpose;

struct Told : Consumer {
  void on(const Event& event) override {
    if (const auto* ended = std::get_if<TrialEnded>(&event)) trials.push_back(*ended);
  }
  std::vector<TrialEnded> trials;
};

TEST(OneTest, Tells_every_run_that_a_command_makes) {
  Words words;
  words.has_command = true;
  words.command = {"/bin/sh", "-c", "exit 3"};
  const auto one = OneTest::find({}, words);
  ASSERT_TRUE(one) << to_string(one.error());
  Told told;
  (*one)->events().add(told);
  for (const Purpose purpose : {Purpose::profile, Purpose::replay, Purpose::replay})
    ASSERT_TRUE((*one)->run({{}, {.competitors = 1}, "as recorded"}, purpose));
  ASSERT_THAT(told.trials, SizeIs(3));
  const TrialEnded& last = told.trials.back();
  EXPECT_EQ(last.purpose, Purpose::replay);
  EXPECT_EQ(last.number, 2);
  EXPECT_EQ(last.why, "as recorded");
  EXPECT_EQ(last.conditions.competitors, 1);
  EXPECT_EQ(last.test, (*one)->shared_test());
  EXPECT_TRUE(last.hit);
  EXPECT_EQ(last.result.process.code, 3);
}

}  // namespace
}  // namespace unflake
