#include "web/forge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/forge_server.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Service { github, gitlab };

// Every test speaks to a server on this machine; none sleeps.
class Forges : public testing::TestWithParam<Service> {
 protected:
  std::unique_ptr<Forge> forge(const std::string& token = ForgeServer::token,
                               const std::string& repository = ForgeServer::repository) {
    ForgeOptions options;
    options.repository = repository;
    options.token = token;
    options.wait = [this](Duration pause) { waits_.push_back(pause); };
    const bool github = GetParam() == Service::github;
    options.api = github ? server_.github_api() : server_.gitlab_api();
    auto opened = github ? open_github(std::move(options)) : open_gitlab(std::move(options));
    return std::move(*opened);
  }

  ForgeServer server_;
  std::vector<Duration> waits_;
};

INSTANTIATE_TEST_SUITE_P(Both, Forges, testing::Values(Service::github, Service::gitlab),
                         [](const auto& given) {
                           return given.param == Service::github ? "GitHub" : "GitLab";
                         });

TEST_P(Forges, An_issue_that_was_opened_is_found_again) {
  const auto forge_here = forge();
  const auto made = forge_here->open("a title", "a body with ümlauts\n");
  ASSERT_TRUE(made) << to_string(made.error());
  const auto all = forge_here->issues();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ(all->front().url, made->url);
  EXPECT_EQ(all->front().body, "a body with ümlauts\n");
  EXPECT_TRUE(all->front().is_open);
  const auto found = forge_here->find(made->url);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->number, made->number);
  EXPECT_EQ(server_.issues().front().labels, std::vector<std::string>{"flaky-test"});
}

TEST_P(Forges, An_address_of_another_place_is_no_issue_of_ours) {
  const auto forge_here = forge();
  ASSERT_TRUE(forge_here->open("a title", "a body"));
  for (const char* url :
       {"", "https://elsewhere/issues/1", "https://github.com/acme/rocket/issues/99",
        "https://github.com/acme/rocket/issues/x"}) {
    const auto found = forge_here->find(url);
    ASSERT_TRUE(found);
    EXPECT_FALSE(*found) << url;
  }
}

TEST_P(Forges, All_pages_are_read) {
  for (int i = 0; i < 250; ++i)
    server_.add({0, "issue " + std::to_string(i), "", true, false, {"flaky-test"}, "", ""});
  server_.add({0, "without the label", "", true, false, {}, "", ""});
  EXPECT_EQ(forge()->issues()->size(), 250u);
}

TEST_P(Forges, An_issue_is_changed_told_of_closed_and_reopened) {
  const auto forge_here = forge();
  const int64_t number = forge_here->open("a title", "a body")->number;
  ASSERT_TRUE(forge_here->rewrite(number, "another body"));
  ASSERT_TRUE(forge_here->comment(number, "news"));
  ASSERT_TRUE(forge_here->close(number));
  EXPECT_EQ(server_.issues()[0].body, "another body");
  EXPECT_EQ(server_.comments().at(0).text, "news");
  const auto closed = forge_here->issues();
  EXPECT_FALSE(closed->front().is_open);
  EXPECT_EQ(closed->front().closed, forge_time("2026-03-01T12:00:00Z"));
  ASSERT_TRUE(forge_here->reopen(number));
  EXPECT_TRUE(server_.issues()[0].is_open);
}

TEST_P(Forges, The_commit_that_closed_an_issue_is_known) {
  const auto forge_here = forge();
  ASSERT_TRUE(forge_here->open("a title", "a body"));
  server_.close(1, "2026-03-01T12:00:00Z", "abc123");
  EXPECT_EQ(*forge_here->closing_commit(1), "abc123");
}

TEST_P(Forges, An_issue_that_a_person_closed_names_no_commit) {
  const auto forge_here = forge();
  ASSERT_TRUE(forge_here->open("a title", "a body"));
  server_.close(1, "2026-03-01T12:00:00Z");
  EXPECT_EQ(*forge_here->closing_commit(1), "");
}

TEST_P(Forges, Without_a_token_one_can_read_and_not_write) {
  EXPECT_TRUE(forge("")->issues());
  const auto made = forge("")->open("a title", "a body");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().what, HasSubstr("401"));
  EXPECT_THAT(made.error().next, HasSubstr("token"));
}

TEST_P(Forges, A_bad_token_is_told_and_not_shown) {
  const auto all = forge("a-wrong-secret")->issues();
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().kind, ErrorKind::usage);
  EXPECT_THAT(to_string(all.error()), testing::Not(HasSubstr("a-wrong-secret")));
}

TEST_P(Forges, An_unknown_repository_is_told) {
  const auto all = forge(ForgeServer::token, "acme/submarine")->issues();
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().what, HasSubstr("404"));
  EXPECT_THAT(all.error().next, HasSubstr("repository's name"));
}

TEST_P(Forges, A_title_that_is_too_long_is_refused_with_the_servers_words) {
  const auto made = forge()->open(std::string(300, 'x'), "a body");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().what, HasSubstr("too long"));
}

TEST_P(Forges, A_rate_limit_is_waited_for_as_long_as_it_says) {
  server_.fail("POST", 429, {{"Retry-After", "7"}});
  EXPECT_TRUE(forge()->open("a title", "a body"));
  EXPECT_THAT(waits_, ElementsAre(std::chrono::seconds(7)));
}

TEST_P(Forges, A_secondary_limit_is_a_rate_limit) {
  server_.fail("POST", 403, {{"Retry-After", "3"}});
  EXPECT_TRUE(forge()->open("a title", "a body"));
  EXPECT_THAT(waits_, ElementsAre(std::chrono::seconds(3)));
}

TEST_P(Forges, A_limit_that_takes_too_long_is_told) {
  server_.fail("GET", 403, {{"X-RateLimit-Remaining", "0"}, {"Retry-After", "3000"}});
  const auto all = forge()->issues();
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().what, HasSubstr("rate limit"));
  EXPECT_THAT(all.error().next, HasSubstr("50m"));
  EXPECT_TRUE(waits_.empty());
}

TEST_P(Forges, A_forbidden_request_is_no_rate_limit) {
  server_.fail("POST", 403);
  const auto made = forge()->open("a title", "a body");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().next, HasSubstr("write issues"));
}

TEST_P(Forges, A_question_is_asked_again_when_the_server_is_busy) {
  server_.fail("GET", 502, {}, 2);
  EXPECT_TRUE(forge()->issues());
  EXPECT_EQ(waits_.size(), 2u);
}

TEST_P(Forges, A_change_is_not_tried_again_when_nobody_knows_whether_it_happened) {
  server_.fail("POST", 502);
  EXPECT_FALSE(forge()->open("a title", "a body"));
  EXPECT_TRUE(server_.issues().empty());
}

TEST_P(Forges, Changes_come_one_second_apart) {
  const auto forge_here = forge();
  ASSERT_TRUE(forge_here->open("a title", "a body"));
  ASSERT_TRUE(forge_here->comment(1, "news"));
  EXPECT_THAT(waits_, ElementsAre(std::chrono::seconds(1)));
}

TEST_P(Forges, A_server_that_went_away_is_told) {
  const auto forge_here = forge();
  server_.go_away();
  const auto all = forge_here->issues();
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().kind, ErrorKind::internal);
}

TEST(Forge, Pull_requests_are_no_issues) {
  ForgeServer server;
  server.add({0, "a change", "", true, true, {"flaky-test"}, "", ""});
  ForgeOptions options;
  options.repository = ForgeServer::repository;
  options.api = server.github_api();
  EXPECT_TRUE((*open_github(options))->issues()->empty());
}

TEST(Forge, A_name_that_is_no_repository_is_refused) {
  for (const char* name : {"", "acme", "acme/", "/rocket", "a/b/c", "a/..", "a/b?c", "a b/c"})
    EXPECT_FALSE(open_github({name, "", "", false, {}})) << name;
  for (const char* name : {"", "acme", "acme//rocket", "/rocket"})
    EXPECT_FALSE(open_gitlab({name, "", "", false, {}})) << name;
}

TEST(Forge, Times_are_read_in_every_zone) {
  const auto noon = forge_time("2026-03-01T12:00:00Z");
  ASSERT_TRUE(noon);
  EXPECT_EQ(forge_time("2026-03-01T14:00:00.123+02:00"), noon);
  EXPECT_EQ(forge_time("2026-03-01T10:30:00-01:30"), noon);
  for (const char* bad :
       {"", "yesterday", "2026-13-01T12:00:00Z", "2026-03-01", "2026-03-01T12:00:00 or so"})
    EXPECT_FALSE(forge_time(bad)) << bad;
}

}  // namespace
}  // namespace unflake
