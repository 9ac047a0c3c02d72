#include "app/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Result<Config> parse(std::string_view text, const std::string& profile = "default") {
  return parse_config(text, "config.toml", profile);
}

TEST(Config, An_empty_file_sets_nothing) {
  const auto config = parse("");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->settings.jobs);
  EXPECT_TRUE(config->overrides.empty());
}

TEST(Config, A_profile_inherits_what_it_leaves_out) {
  const auto config = parse(R"(
[profile.default]
jobs = 4
timeout = "2m"
[profile.ci]
retries = 2
timeout = "5m"
[profile.nightly]
inherits = "ci"
flaky = "fail"
slow_after = "90s"
)",
                            "nightly");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->settings.jobs, 4u);
  EXPECT_EQ(config->settings.retries, 2);
  EXPECT_EQ(config->settings.timeout, Duration(5min));
  EXPECT_EQ(config->settings.flaky, FlakyResult::fail);
  EXPECT_EQ(config->settings.slow_after, Duration(90s));
}

TEST(Config, Overrides_name_the_tests_that_they_are_for) {
  const auto config = parse(R"(
[[override]]
test = "server_test:Slow.*"
timeout = "10m"
serial = true
fork_server = true
)");
  ASSERT_TRUE(config);
  ASSERT_EQ(config->overrides.size(), 1u);
  EXPECT_EQ(config->overrides[0].test, "server_test:Slow.*");
  EXPECT_EQ(config->overrides[0].timeout, Duration(10min));
  EXPECT_EQ(config->overrides[0].serial, true);
  EXPECT_EQ(config->overrides[0].fork_server, true);
}

struct Mistake {
  const char* text;
  const char* what;
  const char* where;
};

TEST(Config, A_mistake_is_told_with_line_and_column) {
  const Mistake mistakes[] = {
      {"[profile.default\njobs=1", "not valid TOML", "line 1, column 17"},
      {"[profile.default]\n  jobs = 0", "'jobs' must be a whole number", "line 2, column 10"},
      {"[profile.default]\njobs = \"4\"", "'jobs' must be a whole number", "line 2, column 8"},
      {"[profile.default]\njob = 4", "there is no setting 'job'", "line 2"},
      {"[profile.default]\ntimeout = \"5 parsecs\"", "not a duration", "line 2, column 11"},
      {"[profile.default]\ntimeout = 5", "must be a duration in quotes", "line 2, column 11"},
      {"[profile.default]\ninherits = \"default\"", "inherits from itself", "config.toml"},
      {"[profile.default]\ninherits = \"none\"", "there is no profile 'none'", "config.toml"},
      {"[[override]]\nretries = 1", "does not say which test", "line 1"},
      {"[override]\nretries = 1", "write overrides as [[override]]", "line 1"},
      {"profile = 3", "write profiles as [profile.NAME]", "line 1"},
      {"[runs]\nx=1", "there is no setting 'runs'", "line 1"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto config = parse(mistake.text);
    ASSERT_FALSE(config) << mistake.text;
    EXPECT_EQ(config.error().kind, ErrorKind::usage);
    EXPECT_THAT(config.error().what, HasSubstr(mistake.what));
    EXPECT_THAT(config.error().where, HasSubstr(mistake.where)) << mistake.text;
  }
}

TEST(Config, Suggests_the_setting_that_was_meant) {
  EXPECT_EQ(parse("[profile.default]\nretires = 4").error().next, "did you mean 'retries'?");
}

TEST(Config, Says_what_a_CI_build_does) {
  const auto config = parse_config(
      "[ci]\nretries = 2\nflaky = \"fail\"\nmass_failure_tests = 5\nmass_failure_percent = 30\n"
      "changed_runs = 20\nquarantine_days = 14\nwarn_days = 3\nlift_runs = 300\n",
      "config.toml", "default");
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->ci.retries, 2);
  EXPECT_EQ(config->ci.flaky, FlakyResult::fail);
  EXPECT_EQ(config->ci.mass_failure_tests, 5);
  EXPECT_EQ(config->ci.quarantine_days, 14);
  EXPECT_FALSE(parse_config("[ci]\nretry = 2\n", "config.toml", "default"));
  EXPECT_FALSE(parse_config("ci = 2\n", "config.toml", "default"));
}

TEST(Config, Names_functions_that_only_lead_to_a_timing_API) {
  const auto config = parse("[code]\nwrappers = [\"Event::wait\"]\n");
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_THAT(config->code.wrappers, testing::ElementsAre("Event::wait"));
}

}  // namespace
}  // namespace unflake
