#include "cli/balance_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Change = BalancedValue::Change;

constexpr const char* source_text = "void wait() {\n  sleep_for(200ms);\n}\n";

// A report about the sleep of `source_text`, which is line 2 of this file.
BalanceReport report_of(const std::string& test, const std::string& file, Change change) {
  BalanceReport report;
  report.test = {"suite", test};
  BalancedValue value;
  value.value.site.file = "helper.cc";
  value.value.site.line = 2;
  value.value.site.api = "nanosleep";
  value.value.most = 200ms;
  value.change = change;
  value.proposed = change == Change::shorten ? 54ms : 200ms;
  if (change == Change::shorten)
    value.source = ValueInSource{file, 2, "sleep_for(200ms);", "200ms", "54ms", "", 26};
  report.values.push_back(std::move(value));
  return report;
}

Project project_at(const std::string& root) {
  Project project;
  project.root = root;
  return project;
}

std::string source_in(const TempFolder& folder, const std::string& name) {
  std::ofstream(folder.file(name)) << source_text;
  return folder.file(name);
}

class BalanceSources : public testing::Test {
 protected:
  const TempFolder folder_;
  const std::string file_ = source_in(folder_, "helper.cc");
};

TEST_F(BalanceSources, What_all_tests_can_do_with_is_edited) {
  BalanceReport one = report_of("One", file_, Change::shorten);
  BalanceReport two = report_of("Two", file_, Change::shorten);
  two.values[0].proposed = 80ms;
  two.values[0].source->new_text = "80ms";
  leave_out_shared_edits({&one, &two});
  const Patch patch = patch_of({&one, &two}, project_at(folder_.path()));
  EXPECT_THAT(patch.text, HasSubstr("+  sleep_for(80ms);"));
  EXPECT_THAT(patch.text, Not(HasSubstr("54ms")));
  EXPECT_THAT(patch.left_out, IsEmpty());
}

TEST_F(BalanceSources, What_another_test_was_not_shown_to_do_with_is_not_edited) {
  BalanceReport one = report_of("One", file_, Change::shorten);
  BalanceReport two = report_of("Two", file_, Change::keep);
  leave_out_shared_edits({&one, &two});
  EXPECT_THAT(one.values[0].source->why_not, HasSubstr("suite:Two passes it too"));
  EXPECT_THAT(patch_of({&one, &two}, project_at(folder_.path())).text, IsEmpty());
}

TEST_F(BalanceSources, A_file_that_cannot_be_patched_does_not_spoil_the_others) {
  const TempFolder elsewhere;
  const std::string other = source_in(elsewhere, "other.cc");
  const BalanceReport one = report_of("One", file_, Change::shorten);
  const BalanceReport two = report_of("Two", other, Change::shorten);
  const Patch patch = patch_of({&one, &two}, project_at(folder_.path()));
  EXPECT_THAT(patch.text, HasSubstr("+  sleep_for(54ms);"));
  ASSERT_EQ(patch.left_out.size(), 1u);
  EXPECT_THAT(patch.left_out[0].where, HasSubstr("other.cc"));
}

TEST_F(BalanceSources, A_test_that_is_run_elsewhere_is_patched_in_its_own_project) {
  const TempFolder elsewhere;
  std::filesystem::create_directories(folder_.file(".git"));
  std::filesystem::create_directories(folder_.file("src"));
  const std::string file = source_in(folder_, "src/helper.cc");
  const BalanceReport report = report_of("One", file, Change::shorten);
  const Patch patch = patch_of({&report}, project_at(elsewhere.path()));
  EXPECT_EQ(patch.folder, folder_.path());
  EXPECT_THAT(patch.text, HasSubstr("+++ b/src/helper.cc"));
}

// A wait that ran out in every run, at `source_text`.
BalanceReport silence(const std::string& test, const std::string& file) {
  BalanceReport report = report_of(test, file, Change::shorten);
  BalancedValue& value = report.values[0];
  value.value.file = file;
  value.value.group = "condition";
  value.value.could_end_early = true;
  value.value.runs = value.value.visits = value.value.ran_out = 5;
  value.source.reset();
  return report;
}

TEST_F(BalanceSources, A_wait_that_nothing_ended_is_edited_only_when_it_is_asked_for) {
  BalanceReport report = silence("One", file_);
  add_sources(report, project_at(folder_.path()), {});
  ASSERT_TRUE(report.values[0].source);
  EXPECT_THAT(report.values[0].source->why_not,
              HasSubstr("nothing ended this wait early, and a shorter one may test less; --site "
                        "helper.cc:2:nanosleep edits it"));
  EXPECT_TRUE(report.values[0].is_left_for_its_length());
  add_sources(report, project_at(folder_.path()), {"", true});
  EXPECT_THAT(report.values[0].source->why_not, Not(HasSubstr("may test less")));
}

TEST_F(BalanceSources, A_wait_that_nothing_ended_keeps_others_from_editing_it) {
  BalanceReport one = report_of("One", file_, Change::shorten);
  BalanceReport two = silence("Two", file_);
  leave_out_shared_edits({&one, &two});
  EXPECT_THAT(one.values[0].source->why_not, HasSubstr("suite:Two passes it too"));
}

TEST_F(BalanceSources, A_source_that_is_not_here_is_named) {
  BalanceReport report = report_of("One", file_, Change::shorten);
  report.values[0].source.reset();
  report.values[0].value.site.file = "net/reply_of_nobody.cc";
  report.values[0].value.file = "/elsewhere/net/reply_of_nobody.cc";
  add_sources(report, project_at(folder_.path()), {});
  ASSERT_TRUE(report.values[0].source);
  EXPECT_EQ(report.values[0].source->file, "/elsewhere/net/reply_of_nobody.cc");
  EXPECT_THAT(report.values[0].source->why_not, HasSubstr("was not found"));
}

}  // namespace
}  // namespace unflake
