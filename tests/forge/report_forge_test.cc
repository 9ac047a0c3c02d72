// `unflake report` as a whole, against a forge on this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "store/store.h"
#include "support/forge_server.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Ended {
  int code = 0;
  std::string output;
};

class ReportForge : public testing::Test {
 protected:
  ReportForge() {
    std::filesystem::create_directory(folder_.file(".unflake"));
    store_ = std::move(*open_store({folder_.file(".unflake/history.db")}));
  }

  // A test that fails once and passes when it is tried again, so many hours ago.
  void flake(const std::string& test, int hours_ago) {
    const TimePoint at = std::chrono::system_clock::now() - std::chrono::hours(hours_ago);
    SessionRecord session;
    session.started = at;
    session.surroundings = {"c0ffee1", "main", false, "machine", "0.1.0"};
    const auto id = store_->begin_session(session);
    ASSERT_TRUE(id);
    RunRecord run;
    run.test = {"suite", test};
    run.started = at;
    run.duration = std::chrono::milliseconds(5);
    run.outcome = OutcomeKind::fail;
    run.failure = Failure{FailureKind::assertion,
                          "fixture.h",
                          12,
                          "",
                          "server.start()",
                          "the port of the mail server is taken"};
    run.signature = signature_of(*run.failure);
    ASSERT_TRUE(store_->record(*id, run));
    RunRecord again;
    again.test = run.test;
    again.attempt = 2;
    again.started = at + std::chrono::seconds(1);
    again.duration = std::chrono::milliseconds(5);
    ASSERT_TRUE(store_->record(*id, again));
    ASSERT_TRUE(store_->end_session(*id));
  }

  Ended report(const std::string& words, const std::string& token = ForgeServer::token) const {
    const std::string command = "cd '" + folder_.path() + "' && GITHUB_TOKEN=" + token +
                                " GITLAB_TOKEN=" + token +
                                " CI_JOB_TOKEN= " UNFLAKE_BIN "/unflake report " + words + " 2>&1";
    std::FILE* out = ::popen(command.c_str(), "r");
    Ended ended;
    char buffer[4096];
    while (const size_t got = std::fread(buffer, 1, sizeof buffer, out))
      ended.output.append(buffer, got);
    ended.code = WEXITSTATUS(::pclose(out));
    return ended;
  }

  std::string github() const { return "--github acme/rocket --api " + server_.github_api(); }
  std::string gitlab() const { return "--gitlab acme/rocket --api " + server_.gitlab_api(); }

  TempFolder folder_;
  ForgeServer server_;
  std::unique_ptr<Store> store_;
};

TEST_F(ReportForge, Says_what_it_would_do_and_does_nothing) {
  flake("Mail.Sends", 5);
  const Ended ended = report(github());
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("open     a new issue"));
  EXPECT_THAT(ended.output,
              HasSubstr("title: Flaky test suite:Mail.Sends: fixture.h:12: server.start()"));
  EXPECT_THAT(ended.output, HasSubstr("nothing was sent: 1 step would be; --send does it"));
  EXPECT_EQ(server_.changes(), 0);
  EXPECT_TRUE(store_->lifecycle().causes()->empty());
}

TEST_F(ReportForge, Says_what_to_do_when_the_issues_cannot_be_read) {
  flake("Mail.Sends", 5);
  server_.fail("GET", 418);
  const Ended ended = report(github());
  EXPECT_EQ(ended.code, 4);
  EXPECT_THAT(ended.output, HasSubstr("next: without --send, too, the issues that exist are read"));
  EXPECT_THAT(ended.output, HasSubstr("GITHUB_TOKEN; `unflake report --format md` needs none"));
}

TEST_F(ReportForge, Tests_with_one_cause_share_one_issue) {
  flake("Mail.Sends", 5);
  flake("Mail.Reads", 4);
  const Ended ended = report(github() + " --send");
  EXPECT_EQ(ended.code, 0) << ended.output;
  ASSERT_EQ(server_.issues().size(), 1u);
  EXPECT_THAT(server_.issues()[0].title, HasSubstr("Flaky tests (2): "));
  EXPECT_THAT(server_.issues()[0].body, HasSubstr("`suite:Mail.Reads`"));
  EXPECT_THAT(ended.output, Not(HasSubstr(ForgeServer::token)));
}

TEST_F(ReportForge, Sent_twice_there_is_nothing_to_do) {
  flake("Mail.Sends", 5);
  ASSERT_EQ(report(gitlab() + " --send").code, 0);
  const int changes = server_.changes();
  EXPECT_THAT(report(gitlab() + " --send").output, HasSubstr("the issues are up to date"));
  EXPECT_EQ(server_.changes(), changes);
}

TEST_F(ReportForge, A_failure_after_somebody_closed_the_issue_reopens_it) {
  flake("Mail.Sends", 5);
  ASSERT_EQ(report(github() + " --send").code, 0);
  server_.close(1, "2026-01-01T00:00:00Z");
  flake("Mail.Sends", 1);
  const Ended ended = report(github() + " --send");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(server_.issues()[0].is_open);
  EXPECT_EQ(store_->lifecycle().causes()->at(0).reopened, 1);
}

TEST_F(ReportForge, A_token_is_needed_to_send) {
  flake("Mail.Sends", 5);
  const Ended ended = report(github() + " --send", "''");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("set GITHUB_TOKEN"));
}

TEST_F(ReportForge, A_bad_token_is_told_and_not_shown) {
  flake("Mail.Sends", 5);
  const Ended ended = report(github() + " --send", "a-wrong-secret");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("401"));
  EXPECT_THAT(ended.output, Not(HasSubstr("a-wrong-secret")));
}

TEST_F(ReportForge, Causes_are_reported_with_their_figures) {
  flake("Mail.Sends", 5);
  flake("Mail.Sends", 4);
  const Ended ended = report("--days 2");
  EXPECT_EQ(ended.code, 0);
  for (const char* part : {"4 runs in 2 builds", "2/4 runs failed", "2 builds", "commit c0ffee1",
                           "unflake reproduce suite:Mail.Sends --failure"})
    EXPECT_THAT(ended.output, HasSubstr(part));
}

}  // namespace
}  // namespace unflake
