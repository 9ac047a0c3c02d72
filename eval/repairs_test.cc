#include "repairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake::eval {
namespace {

using testing::HasSubstr;
using testing::Not;

Truth truth_of(const std::string& program, const std::string& category = "async wait") {
  Truth truth;
  truth.program = program;
  truth.category = category;
  truth.expect = "reproduced";
  truth.lateness_can_cause_it = true;
  truth.critical = category == "async wait" ? "a.cc:1" : category;
  return truth;
}

constexpr const char* proven = R"({"repairs": [{}], "exact_timing": null, "deadlock": "",
  "patches": [
    {"idiom": "join", "why_not": "", "proof": {"verdict": "worse", "why": "it hangs",
     "build": {"before_us": 1000000, "after_us": 2000000}, "overhead": null}},
    {"idiom": "poll", "diff": "--- a/x\n", "is_in_project": true, "proof": {"verdict": "repaired",
     "build": {"before_us": 1000000, "after_us": 1000000}, "overhead": {"ratio": 0.5}}},
    {"idiom": "hand-over", "why_not": "", "proof": null}]})";

TEST(Repairs, What_must_be_said_follows_from_the_truth) {
  EXPECT_EQ(wanted_repair(truth_of("a")), WantedRepair::repair);
  EXPECT_EQ(wanted_repair(truth_of("a", "exact timing")), WantedRepair::timing);
  EXPECT_EQ(wanted_repair(truth_of("a", "deadlock")), WantedRepair::defect);
  Truth sound = truth_of("a");
  sound.expect = "nothing";
  EXPECT_EQ(wanted_repair(sound), WantedRepair::none);
}

TEST(Repairs, Another_search_is_compared_on_the_same_failures) {
  Repaired found = repaired_by(truth_of("a"), proven, 30);
  found.compared =
      compared_by("flakesync", R"({"repairs": [], "runs": 12, "out_of_budget": true})", 120);
  EXPECT_FALSE(found.compared->is_ordered);
  const std::string text = repairs_section({found}, {"--budget", "1m"}, {});
  EXPECT_THAT(text, HasSubstr("`--method flakesync --no-patch`"));
  EXPECT_THAT(text, HasSubstr("| a | order | no order in the time | 12 | 120 |"));
  found.compared.reset();
  EXPECT_THAT(repairs_section({found}, {}, {}), Not(HasSubstr("flakesync")));
}

TEST(Repairs, Only_a_patch_that_was_proven_counts) {
  const Repaired found = repaired_by(truth_of("a"), proven, 30);
  EXPECT_EQ(found.idiom, "poll");
  EXPECT_TRUE(found.is_idiomatic());
  EXPECT_TRUE(found.in_project);
  EXPECT_EQ(found.run_time, 0.5);
  EXPECT_EQ(found.build_seconds, 5);
  EXPECT_EQ(found.seconds, 25);
  EXPECT_EQ(found.why_not, "");
}

TEST(Repairs, An_order_without_a_patch_is_none) {
  const Repaired found =
      repaired_by(truth_of("a"), R"({"repairs": [{}], "patches": [], "notes": ["no sources"]})", 3);
  EXPECT_FALSE(found.is_proven());
  EXPECT_TRUE(found.is_ordered);
  EXPECT_EQ(found.why_not, "no sources");
  EXPECT_FALSE(repaired_by(truth_of("a"), "no JSON", 3).is_proven());
}

TEST(Repairs, Runs_with_the_patch_that_fail_or_hang_are_counted) {
  Repaired found = repaired_by(truth_of("a"), proven, 30);
  add_runs(found, R"({"event": "run_ended", "outcome": "pass"}
{"event": "run_ended", "outcome": "timeout"}
{"event": "test_ended"}
)");
  EXPECT_EQ(found.plain_runs, 2);
  EXPECT_EQ(found.failed_runs, 1);
  EXPECT_TRUE(found.hangs);
}

TEST(Repairs, Targets_are_about_their_own_kind_of_program) {
  std::vector<Repaired> all{repaired_by(truth_of("a"), proven, 30)};
  Repaired timed = repaired_by(truth_of("b", "exact timing"), R"({"exact_timing": {}})", 3);
  all.push_back(timed);
  Repaired stuck = repaired_by(truth_of("c", "deadlock"), R"({"deadlock": "a waits for b"})", 3);
  all.push_back(stuck);
  for (const Score& score : repair_scores(all)) EXPECT_TRUE(score.met) << score.figure;
  all.push_back(repaired_by(truth_of("d"), "no JSON", 400));
  const auto scores = repair_scores(all);
  EXPECT_EQ(scores[0].measured, "1 of 2 (50 %)");
  EXPECT_FALSE(scores[0].met);
  EXPECT_FALSE(scores[3].met) << "400 s is the slowest of ten";
  all[0].hangs = true;
  EXPECT_FALSE(repair_scores(all)[7].met);
}

TEST(Repairs, The_section_shows_patches_in_full) {
  const std::vector<Repaired> all{repaired_by(truth_of("a"), proven, 30),
                                  repaired_by(truth_of("d"), "no JSON", 4)};
  const std::string section = repairs_section(all, {"--budget", "2m"}, {});
  EXPECT_THAT(section, HasSubstr(repairs_heading));
  EXPECT_THAT(section, HasSubstr("| a | async wait | poll | 25 | 5 |"));
  EXPECT_THAT(section, HasSubstr("| d | async wait | **none** |"));
  EXPECT_THAT(section, HasSubstr("```diff\n--- a/x\n```"));
}

}  // namespace
}  // namespace unflake::eval
