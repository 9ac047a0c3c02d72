#include "ingest/ingest.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

RunRecord run_of(const std::string& name, const std::string& signature = "") {
  RunRecord run;
  run.test = {"suite", name};
  run.signature = signature;
  if (signature.empty()) return run;
  run.outcome = OutcomeKind::fail;
  run.failure.emplace();
  return run;
}

void add(BuildResults& results, SessionId session, const RunRecord& run, int times = 1) {
  for (int i = 0; i < times; ++i) results.add(session, {&run, 1});
}

TEST(BuildResults, A_pass_counts_for_a_test_that_fails_later_in_another_report) {
  BuildResults results;
  add(results, 1, run_of("a"), 2);
  add(results, 2, run_of("a", "one"));
  add(results, 2, run_of("b"));
  const Tally tally = results.tally_of({"suite", "a"});
  EXPECT_EQ(tally.passes, 2);
  EXPECT_EQ(tally.failures, 1);
  EXPECT_EQ(results.others().passed, 1);
  EXPECT_EQ(results.others().passes, 3);
}

TEST(BuildResults, Failures_of_a_kind_share_one_place_that_knows_their_sessions) {
  BuildResults results;
  add(results, 1, run_of("a", "one"), 1000);
  add(results, 7, run_of("a", "one"));
  add(results, 7, run_of("a", "two"));
  const auto& failures = results.failed().at({"suite", "a"}).failures;
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].runs, 1001);
  EXPECT_EQ(failures[0].sessions, (std::set<SessionId>{1, 7}));
  EXPECT_EQ(failures[1].sessions, (std::set<SessionId>{7}));
}

TEST(BuildResults, Failures_that_are_all_different_share_one_place_from_some_number_on) {
  BuildResults results({.failures = 3});
  for (int i = 0; i < 10; ++i) add(results, 1, run_of("a", "s" + std::to_string(i)));
  const auto& failures = results.failed().at({"suite", "a"}).failures;
  ASSERT_EQ(failures.size(), 4u);
  EXPECT_EQ(failures.back().runs, 7);
  EXPECT_EQ(failures.back().outcome.signature, "");
}

TEST(BuildResults, What_the_bounds_leave_out_is_counted) {
  BuildResults results({.tests = 1, .failed_tests = 1});
  add(results, 1, run_of("a"));
  add(results, 1, run_of("b"));
  add(results, 1, run_of("c", "one"));
  add(results, 1, run_of("c"));
  add(results, 1, run_of("d", "one"));
  EXPECT_EQ(results.passes_left_out(), 1);
  EXPECT_EQ(results.failures_left_out(), 1);
  EXPECT_EQ(results.tally_of({"suite", "c"}).passes, 1);
}

}  // namespace
}  // namespace unflake
