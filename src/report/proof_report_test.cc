#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/repair_text.h"
#include "util/json.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ProofReport a_report() {
  ProofReport report;
  report.test = {"post_test", "Post.Delivers"};
  report.repro = ".unflake/repro/post.json";
  report.headline = "post_test.cc:45: office.delivered() == 1";
  report.signature = "8c7b35ab158e3e23";
  report.change = "fix.patch";
  report.build_system = "CMake";
  report.built_before = 12s;
  report.built_after = 11s;
  Proof& proof = report.proof;
  proof.verdict = Proof::Verdict::repaired;
  proof.runs = {{ProofRuns::Kind::under_plan, {20, 20}, {0, 100}, 0, 0, "", "200 ms late"},
                {ProofRuns::Kind::plain, {1, 100}, {0, 100}, 0, 2, "", ""},
                {ProofRuns::Kind::schedules, {}, {}, 0, 0, "it starts a static program", ""}};
  proof.runs_with_patch = 200;
  proof.rate_below = 0.0148;
  proof.overhead = Interval{0.95, 1.02};
  proof.overhead_median = 0.99;
  proof.median_before = 60ms;
  proof.median_after = 59ms;
  proof.not_covered = {"a machine on which a thread is more than 1 s late"};
  return report;
}

TEST(Proof_text, Says_what_was_run_what_it_shows_and_what_it_does_not) {
  const std::string text = proof_text(a_report(), Style(false));
  EXPECT_THAT(text,
              AllOf(HasSubstr("post_test:Post.Delivers"), HasSubstr("fix.patch, built by CMake"),
                    HasSubstr("20 of 20"), HasSubstr("0 of 100"), HasSubstr("200 ms late"),
                    HasSubstr("otherwise: 0 without, 2 with it"),
                    HasSubstr("not made: it starts a static program")));
  EXPECT_THAT(text,
              AllOf(HasSubstr("run time: 0.99x (95 % interval 0.95..1.02x)"),
                    HasSubstr("REPAIRED: the failure came in 21 of 120 runs without the patch "
                              "and in none of 200 with it"),
                    HasSubstr("1.5 %"), HasSubstr("not covered:"), HasSubstr("more than 1 s")));
}

TEST(Proof_text, A_build_that_fails_shows_its_lines_safely) {
  ProofReport report = a_report();
  report.proof = {};
  report.proof.verdict = Proof::Verdict::not_built;
  report.proof.why = "the build failed\n  | x.c:1: error \x1b[31mred";
  const std::string text = proof_text(report, Style(false));
  EXPECT_THAT(text,
              AllOf(HasSubstr("NOT BUILT: the build failed\n  | x.c:1"), Not(HasSubstr("\x1b"))));
}

TEST(Proof_json, Has_every_count_and_the_verdict) {
  const nlohmann::json json = parse_json(proof_json(a_report()));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["verdict"], "repaired");
  EXPECT_EQ(json["runs"][0]["kind"], "under the plan");
  EXPECT_EQ(json["runs"][0]["before"]["failed_as_recorded"], 20);
  EXPECT_EQ(json["runs"][0]["after"]["runs"], 100);
  EXPECT_EQ(json["runs"][1]["after"]["other_failures"], 2);
  EXPECT_EQ(json["runs"][2]["why_not_made"], "it starts a static program");
  EXPECT_DOUBLE_EQ(json["overhead"]["ratio"], 0.99);
  EXPECT_EQ(json["build"]["system"], "CMake");
}

}  // namespace
}  // namespace unflake
