#include "web/issue_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/history_runs.h"

namespace unflake {
namespace {

using Kind = IssueAction::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* address = "https://forge/acme/rocket/issues/1";

CauseIssue failing_cause() {
  CauseIssue cause;
  cause.cause.id = 7;
  cause.cause.title = "a_test.cc:42: ok";
  cause.cause.signatures = {"00000000000000aa"};
  cause.title = "Flaky test";
  cause.text = "figures";
  cause.owner = "@acme/pilots";
  cause.fails_now = true;
  cause.last_failure = at_second(100);
  return cause;
}

IssuePlanning planning() {
  return {"rocket", {256, 65536}, [](auto&, auto&) { return true; }};
}

// The issue as unflake has written it for the cause.
ForgeIssue written_for(const CauseIssue& cause) {
  const auto plan = plan_issues(std::vector{cause}, {}, planning());
  return {1, address, plan.at(0).title, plan.at(0).text, true, {}};
}

CauseIssue with_issue(CauseIssue cause) {
  cause.cause.url = address;
  return cause;
}

ForgeIssue closed(ForgeIssue issue, int64_t second) {
  issue.is_open = false;
  issue.closed = at_second(second);
  return issue;
}

std::vector<Kind> kinds(const CauseIssue& cause, const std::vector<ForgeIssue>& issues,
                        const IssuePlanning& how = planning()) {
  std::vector<Kind> kinds;
  for (const IssueAction& action : plan_issues(std::vector{cause}, issues, how))
    kinds.push_back(action.kind);
  return kinds;
}

TEST(IssuePlan, A_new_cause_gets_an_issue) {
  EXPECT_THAT(kinds(failing_cause(), {}), ElementsAre(Kind::open));
}

TEST(IssuePlan, A_cause_that_fails_no_more_gets_none) {
  CauseIssue cause = failing_cause();
  cause.fails_now = false;
  EXPECT_THAT(kinds(cause, {}), IsEmpty());
}

TEST(IssuePlan, Planned_twice_there_is_nothing_to_do) {
  const CauseIssue cause = failing_cause();
  EXPECT_THAT(kinds(with_issue(cause), {written_for(cause)}), IsEmpty());
}

TEST(IssuePlan, New_figures_rewrite_the_body_without_a_comment) {
  CauseIssue cause = with_issue(failing_cause());
  const ForgeIssue issue = written_for(cause);
  cause.text = "other figures";
  EXPECT_THAT(kinds(cause, {issue}), ElementsAre(Kind::rewrite));
}

TEST(IssuePlan, An_issue_whose_address_was_lost_is_found_by_its_mark) {
  EXPECT_THAT(kinds(failing_cause(), {written_for(failing_cause())}), ElementsAre(Kind::adopt));
}

TEST(IssuePlan, A_number_alone_does_not_make_it_the_same_cause) {
  CauseIssue other = failing_cause();
  other.cause.signatures = {"00000000000000cc"};
  EXPECT_THAT(kinds(other, {written_for(failing_cause())}), ElementsAre(Kind::open));
}

TEST(IssuePlan, An_issue_of_another_project_is_left_alone) {
  IssuePlanning other = planning();
  other.project = "glider";
  EXPECT_THAT(kinds(failing_cause(), {written_for(failing_cause())}, other),
              ElementsAre(Kind::open));
}

TEST(IssuePlan, Another_owner_is_news) {
  CauseIssue cause = with_issue(failing_cause());
  const ForgeIssue issue = written_for(cause);
  cause.owner = "@acme/engineers";
  const auto plan = plan_issues(std::vector{cause}, std::vector{issue}, planning());
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].text, "Owner is now @acme/engineers.");
  EXPECT_EQ(plan[1].kind, Kind::rewrite);
}

TEST(IssuePlan, An_owner_that_is_no_name_calls_nobody) {
  CauseIssue cause = with_issue(failing_cause());
  const ForgeIssue issue = written_for(cause);
  cause.owner = "@a, @b <script>";
  EXPECT_EQ(plan_issues(std::vector{cause}, std::vector{issue}, planning())[0].text,
            "Owner is now `@a, @b <script>`.");
}

TEST(IssuePlan, The_end_of_quarantine_is_told_once) {
  CauseIssue cause = with_issue(failing_cause());
  ForgeIssue issue = written_for(cause);
  cause.expires = *parse_day("2026-03-01");
  const auto plan = plan_issues(std::vector{cause}, std::vector{issue}, planning());
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_THAT(plan[0].text, HasSubstr("ends on 2026-03-01"));
  issue.body = plan[1].text;
  EXPECT_THAT(kinds(cause, {issue}), IsEmpty());
}

TEST(IssuePlan, What_is_over_is_closed_with_its_reason) {
  CauseIssue cause = with_issue(failing_cause());
  const ForgeIssue issue = written_for(cause);
  cause.why_close = "0 of 300 runs failed.";
  const auto plan = plan_issues(std::vector{cause}, std::vector{issue}, planning());
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].text, "Closed by unflake. 0 of 300 runs failed.");
  EXPECT_EQ(plan[1].kind, Kind::close);
}

TEST(IssuePlan, A_person_who_closes_an_issue_claims_a_fix) {
  const CauseIssue cause = with_issue(failing_cause());
  EXPECT_THAT(kinds(cause, {closed(written_for(cause), 200)}), ElementsAre(Kind::note_closed));
}

TEST(IssuePlan, A_failure_after_that_reopens_it) {
  const CauseIssue cause = with_issue(failing_cause());
  EXPECT_THAT(kinds(cause, {closed(written_for(cause), 50)}),
              ElementsAre(Kind::note_closed, Kind::reopen, Kind::comment));
}

TEST(IssuePlan, A_failure_of_code_without_the_fix_does_not) {
  const CauseIssue cause = with_issue(failing_cause());
  IssuePlanning how = planning();
  how.has_fix = [](auto&, auto&) { return false; };
  EXPECT_THAT(kinds(cause, {closed(written_for(cause), 50)}, how), ElementsAre(Kind::note_closed));
}

TEST(IssuePlan, A_cause_that_came_back_is_told_with_its_history) {
  CauseIssue cause = with_issue(failing_cause());
  const ForgeIssue issue = closed(written_for(cause), 50);
  cause.came_back = true;
  cause.past = "Before: closed.";
  const auto plan = plan_issues(std::vector{cause}, std::vector{issue}, planning());
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].kind, Kind::reopen);
  EXPECT_EQ(plan[1].text, "This failure came back. Before: closed.");
}

TEST(IssuePlan, A_closed_cause_with_a_closed_issue_rests) {
  CauseIssue cause = with_issue(failing_cause());
  const ForgeIssue issue = closed(written_for(cause), 200);
  cause.cause.state = CauseRecord::State::closed;
  EXPECT_THAT(kinds(cause, {issue}), IsEmpty());
}

TEST(IssuePlan, Titles_and_bodies_keep_within_the_limits) {
  CauseIssue cause = failing_cause();
  cause.title = std::string(1000, 'x') + "\n\x1b[31m";
  cause.text.clear();
  for (int i = 0; i < 10'000; ++i) cause.text += "A paragraph of some length.\n\n";
  const auto plan = plan_issues(std::vector{cause}, {}, planning());
  EXPECT_LE(plan[0].title.size(), 256u);
  EXPECT_LE(plan[0].text.size(), 65536u);
}

TEST(IssuePlan, A_body_that_people_have_filled_is_not_rewritten) {
  CauseIssue cause = with_issue(failing_cause());
  ForgeIssue issue = written_for(cause);
  issue.body = std::string(65000, 'x') + issue.body;
  cause.text = std::string(2000, 'y');
  for (const IssueAction& action : plan_issues(std::vector{cause}, std::vector{issue}, planning()))
    EXPECT_LE(action.text.size(), 65536u);
}

}  // namespace
}  // namespace unflake
