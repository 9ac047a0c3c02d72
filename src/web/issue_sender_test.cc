#include "web/issue_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/forge_server.h"
#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A history with one cause, and a forge on this machine.
class Sending : public testing::Test {
 protected:
  Sending() {
    store_ = std::move(*open_store({folder_.file("history.db")}));
    ForgeOptions options;
    options.repository = ForgeServer::repository;
    options.token = ForgeServer::token;
    options.api = server_.github_api();
    options.wait = [](Duration) {};
    forge_ = std::move(*open_github(options));
    CauseIssue cause;
    cause.cause.title = "a_test.cc:42: ok";
    cause.cause.signatures = {"00000000000000aa"};
    cause.cause.opened = at_second(0);
    cause.title = "Flaky test";
    cause.text = "figures";
    cause.fails_now = true;
    cause.last_failure = at_second(100);
    causes_ = {cause};
    causes_[0].cause.id = *store_->lifecycle().save_cause(causes_[0].cause);
  }

  // What one call of the command does; the causes are then as the next one would read them.
  Result<void> send() {
    const auto issues = forge_->issues();
    if (!issues) return issues.error();
    const auto plan = plan_issues(causes_, *issues, {"rocket", forge_->limits(), has_fix_});
    IssueSender sender(*forge_, store_->lifecycle(), "rocket", [](size_t) {
      LifecycleStep step;
      step.test = {"suite", "Mail.Sends"};
      step.signature = "00000000000000aa";
      return std::vector{step};
    });
    sent_ = {};
    auto done = sender.send(plan, causes_, at_second(now_), sent_);
    causes_[0].cause = store_->lifecycle().causes()->at(0);
    return done;
  }

  void remember_test() {
    const auto session = store_->begin_session(session_of_commit("c1"));
    ASSERT_TRUE(store_->record(*session, failing_run("Mail.Sends", 1)));
    ASSERT_TRUE(store_->end_session(*session));
  }

  std::vector<LifecycleStep::Kind> told() {
    std::vector<LifecycleStep::Kind> kinds;
    for (const LifecycleStep& step : *store_->lifecycle().steps({})) kinds.push_back(step.kind);
    return kinds;
  }

  TempFolder folder_;
  ForgeServer server_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Forge> forge_;
  std::vector<CauseIssue> causes_;
  SentActions sent_;
  int64_t now_ = 1000;
  std::function<bool(const std::string&, const ForgeIssue&)> has_fix_ =
      [](const std::string&, const ForgeIssue&) { return true; };
};

TEST_F(Sending, An_issue_is_opened_once) {
  remember_test();
  ASSERT_TRUE(send());
  EXPECT_EQ(causes_[0].cause.url, "https://github.com/acme/rocket/issues/1");
  EXPECT_THAT(told(), ElementsAre(LifecycleStep::Kind::report_opened));
  ASSERT_TRUE(send());
  EXPECT_EQ(sent_.done, 0u);
  EXPECT_EQ(server_.changes(), 1);
}

TEST_F(Sending, A_history_that_was_lost_opens_no_second_one) {
  ASSERT_TRUE(send());
  causes_[0].cause.url.clear();
  ASSERT_TRUE(store_->lifecycle().save_cause(causes_[0].cause));
  ASSERT_TRUE(send());
  EXPECT_EQ(server_.issues().size(), 1u);
  EXPECT_EQ(causes_[0].cause.url, "https://github.com/acme/rocket/issues/1");
}

TEST_F(Sending, Of_two_jobs_that_open_one_at_the_same_time_the_later_gives_way) {
  server_.race_with_next_open();
  ASSERT_TRUE(send());
  ASSERT_EQ(server_.issues().size(), 2u);
  EXPECT_TRUE(server_.issues()[0].is_open);
  EXPECT_FALSE(server_.issues()[1].is_open);
  EXPECT_EQ(causes_[0].cause.url, "https://github.com/acme/rocket/issues/1");
  EXPECT_THAT(sent_.notes, ElementsAre(HasSubstr("another job")));
}

TEST_F(Sending, What_was_done_before_an_error_is_kept) {
  causes_.push_back(causes_[0]);
  causes_[1].cause.id = 0;
  causes_[1].cause.signatures = {"00000000000000bb"};
  server_.fail("POST", 500, {}, 0);
  ASSERT_TRUE(send());
  EXPECT_EQ(server_.issues().size(), 2u);
  causes_[0].text = causes_[1].text = "other figures";
  causes_[1].cause = store_->lifecycle().causes()->at(1);
  server_.fail("PATCH", 503, {}, 1);
  EXPECT_FALSE(send());
  EXPECT_EQ(sent_.done, 0u);
  ASSERT_TRUE(send());
  EXPECT_THAT(server_.issues()[1].body, HasSubstr("other figures"));
}

TEST_F(Sending, A_person_who_closes_an_issue_claims_a_fix) {
  remember_test();
  ASSERT_TRUE(send());
  server_.close(1, "2023-11-14T22:30:00Z", "abc123");
  ASSERT_TRUE(send());
  EXPECT_EQ(causes_[0].cause.state, CauseRecord::State::closed);
  const auto steps = *store_->lifecycle().steps({});
  EXPECT_TRUE(std::ranges::any_of(steps, [](const LifecycleStep& step) {
    return step.kind == LifecycleStep::Kind::report_closed && step.commit == "abc123";
  }));
  const int before = server_.changes();
  ASSERT_TRUE(send());
  EXPECT_EQ(server_.changes(), before);
}

TEST_F(Sending, It_is_reopened_when_it_comes_back) {
  ASSERT_TRUE(send());
  server_.close(1, "2023-11-14T22:14:00Z");  // before the last failure
  ASSERT_TRUE(send());
  EXPECT_TRUE(server_.issues()[0].is_open);
  EXPECT_EQ(causes_[0].cause.state, CauseRecord::State::open);
  EXPECT_EQ(causes_[0].cause.reopened, 1);
  EXPECT_THAT(server_.comments().at(0).text, HasSubstr("came back"));
}

TEST_F(Sending, What_is_over_is_closed) {
  ASSERT_TRUE(send());
  causes_[0].why_close = "0 of 300 runs failed.";
  ASSERT_TRUE(send());
  EXPECT_FALSE(server_.issues()[0].is_open);
  EXPECT_EQ(causes_[0].cause.state, CauseRecord::State::closed);
}

}  // namespace
}  // namespace unflake
