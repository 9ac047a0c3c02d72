#include "detect_replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace unflake::eval {
namespace {

std::vector<RatedRuns> two_projects() {
  std::vector<RatedRuns> rates;
  for (int i = 0; i < 40; ++i)
    for (const char* project : {"north", "south"})
      rates.push_back(
          {project, fmt::format("Suite{}.Case{}", i / 4, i), 1000, i < 2 ? 50 : 0, 0.1});
  return rates;
}

TEST(DetectReplay, learns_from_the_other_projects_alone) {
  auto rates = two_projects();
  for (RatedRuns& test : rates)
    if (test.project == "north") test.failures = 500;
  const auto projects = projects_of(rates, {});
  ASSERT_EQ(projects.size(), 2u);
  EXPECT_EQ(projects[0].name, "north");
  EXPECT_GT(projects[0].prior.weights[0], projects[1].prior.weights[0]);
}

TEST(DetectReplay, finds_the_same_with_the_same_seed) {
  const auto projects = projects_of(two_projects(), {});
  const ReplaySettings settings{170, 2, 7, 1};
  const Detections once = replay({&projects[0]}, {}, settings);
  EXPECT_EQ(once, replay({&projects[0]}, {}, settings));
  EXPECT_EQ(once[0].size(), 2u);
}

TEST(DetectReplay, tells_when_so_many_were_found) {
  const Detections found{{1, 5}, {2, 9}};
  EXPECT_EQ(time_until(found[0], 1.5), 5);
  EXPECT_EQ(time_until(found, 1.5), 5);
  EXPECT_EQ(time_until(found, 0), 0);
  EXPECT_TRUE(std::isinf(time_until(found, 2.5)));
}

TEST(DetectReplay, a_project_of_which_too_little_was_found_costs_what_was_spent) {
  const auto projects = projects_of(two_projects(), {});
  DetectFigures figures;
  figures.settings.patience = 3;
  figures.together.everything.seconds = 100;
  figures.alone.push_back({{&projects[0]}, {170, 2, 0, 100}, {{1.0}}});
  EXPECT_DOUBLE_EQ(figures.time_alone(), 3);
  EXPECT_FALSE(detect_scores(figures)[1].met);
}

}  // namespace
}  // namespace unflake::eval
