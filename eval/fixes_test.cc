#include "fixes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "subprocess.h"
#include "support/temp_folder.h"
#include "zoo_repository.h"

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string zoo = UNFLAKE_ZOO_SOURCES;

std::vector<FixTruth> fixes() {
  const auto all = read_fixes(zoo + "/fixes", {});
  EXPECT_TRUE(all) << (all ? "" : to_string(all.error()));
  return all ? *all : std::vector<FixTruth>{};
}

// A copy of the programs' sources, to which a patch is applied.
class ZooCopy {
 public:
  ZooCopy() {
    fs::create_directories(place_.file("zoo"));
    for (const auto& entry : fs::directory_iterator(zoo))
      if (entry.path().extension() == ".cc") fs::copy(entry.path(), place_.file("zoo"));
    for (const char* name : {"support", "mains"})
      fs::copy(zoo + "/" + name, place_.file(std::string("zoo/") + name),
               fs::copy_options::recursive);
  }

  std::string run(const std::string& line) const {
    const auto result = run_tool({"/bin/sh", "-ec", line}, place_.path(), 2min);
    if (!result) return to_string(result.error());
    return result->status == 0 ? "" : result->output + result->errors + "failed";
  }

 private:
  const TempFolder place_;
};

TEST(Fixes, There_are_twenty_wrong_ones_and_ten_right_ones) {
  int wrong = 0, right = 0;
  for (const FixTruth& fix : fixes()) (fix.repairs ? right : wrong) += 1;
  EXPECT_GE(wrong, 20);
  EXPECT_GE(right, 10);
}

TEST(Fixes, Every_truth_has_a_patch_of_its_program_that_applies) {
  const ZooCopy copy;
  for (const FixTruth& fix : fixes()) {
    EXPECT_FALSE(fix.kind.empty() || fix.why.empty()) << fix.name;
    EXPECT_TRUE(fix.name.starts_with(fix.program + "-")) << fix.name;
    EXPECT_EQ(copy.run("git apply --check '" + fs::absolute(zoo).string() + "/fixes/" + fix.name +
                       ".patch'"),
              "")
        << fix.name;
  }
}

// The others need a framework, which takes long to compile: `make eval-fixes` does.
TEST(Fixes, Those_of_a_plain_program_compile) {
  const auto truth = read_truths(zoo, {"torn_quote"});
  ASSERT_TRUE(truth);
  for (const FixTruth& fix : fixes()) {
    if (fix.program != "torn_quote") continue;
    const ZooCopy copy;
    EXPECT_EQ(copy.run("git apply '" + fs::absolute(zoo).string() + "/fixes/" + fix.name +
                       ".patch' && " + compile_line(truth->front(), "out") + " -fsyntax-only"),
              "")
        << fix.name;
  }
}

TEST(Fixes, Only_what_is_called_repaired_is_accepted) {
  const FixTruth wrong{"a-x", "a", false, "retry", "why"}, right{"a-y", "a", true, "join", "why"};
  std::vector<JudgedFix> all{
      judged_by(wrong, R"({"verdict": "not repaired", "why": "it came", "runs_with_patch": 3})"),
      judged_by(right, R"({"verdict": "repaired", "why": "", "runs_with_patch": 900})")};
  EXPECT_EQ(all[0].why, "it came");
  EXPECT_EQ(all[1].runs, 900);
  EXPECT_TRUE(fix_scores(all)[0].met);
  EXPECT_TRUE(fix_scores(all)[1].met);
  all.push_back(judged_by(wrong, R"({"verdict": "repaired"})"));
  all.push_back(judged_by(right, "no JSON"));
  EXPECT_FALSE(fix_scores(all)[0].met);
  EXPECT_EQ(fix_scores(all)[0].measured, "1 of 2");
  EXPECT_FALSE(fix_scores(all)[1].met);
  const std::string section = fixes_section(all, {"--budget", "2m"}, {});
  EXPECT_THAT(section, HasSubstr(fixes_heading));
  EXPECT_THAT(section, HasSubstr("| a-x | retry | no | not repaired | 3 |"));
}

}  // namespace
}  // namespace unflake::eval
