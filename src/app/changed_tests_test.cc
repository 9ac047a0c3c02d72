#include "app/project.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::shared_ptr<const Test> at(const std::string& name, const std::string& file, int line) {
  auto test = std::make_shared<Test>();
  test->id = {"t", name};
  test->framework = Framework::gtest;
  test->file = file;
  test->line = line;
  test->command.argv = {"/build/t"};
  return test;
}

TestId id(const std::string& name) {
  return {"t", name};
}

constexpr const char* diff = R"(diff --git a/src/a_test.cc b/src/a_test.cc
index 1..2 100644
--- a/src/a_test.cc
+++ b/src/a_test.cc
@@ -9,0 +10,4 @@ TEST(A, One) {
+
+// about two
+TEST(A, Two) {
++++ b/trick
@@ -30 +34 @@ TEST(A, Three) {
-  old();
+  now();
@@ -40,2 +43,0 @@
-  gone();
-
diff --git a/gone.cc b/gone.cc
--- a/gone.cc
+++ /dev/null
@@ -1 +0,0 @@
-int x;
)";

TEST(ChangedTests, A_diff_names_the_lines_that_matter) {
  EXPECT_THAT(read_diff(diff), ElementsAre(Pair("src/a_test.cc", ElementsAre(12, 13, 34, 34, 43))));
  EXPECT_THAT(read_diff(""), IsEmpty());
  EXPECT_THAT(read_diff("+++ b/x\n@@ nonsense\n+a\n@@ -1 +x,99999999999999 @@\n+a\n"),
              ElementsAre(Pair("x", ElementsAre(0))));
}

TEST(ChangedTests, A_test_reaches_to_the_next_one) {
  const std::vector<std::shared_ptr<const unflake::Test>> tests = {
      at("One", "/repo/src/a_test.cc", 5), at("Two", "/repo/src/a_test.cc", 12),
      at("Three", "/repo/src/a_test.cc", 20), at("Four", "/repo/src/a_test.cc", 36),
      at("Elsewhere", "/repo/src/b_test.cc", 12)};
  const ChangedTests found = changed_tests(tests, {"/repo", read_diff(diff), {}});
  EXPECT_THAT(found.changed, ElementsAre(id("Four"), id("Three"), id("Two")));
  EXPECT_THAT(found.undecided, IsEmpty());
}

TEST(ChangedTests, Without_lines_the_file_decides_and_without_a_file_nothing_does) {
  const std::vector<std::shared_ptr<const unflake::Test>> tests = {
      at("By file", "src/a_test.cc", 0), at("By end", "a_test.cc", 12),
      at("Fresh", "/repo/new_test.cc", 3), at("Outside", "/other/src/a_test.cc", 12),
      at("Nowhere", "", 0)};
  const ChangedTests found = changed_tests(tests, {"/repo", read_diff(diff), {"new_test.cc"}});
  EXPECT_THAT(found.changed, ElementsAre(id("By end"), id("By file"), id("Fresh")));
  EXPECT_THAT(found.undecided, ElementsAre(id("Nowhere")));
}

TEST(ChangedTests, Are_none_when_nothing_was_edited) {
  const ChangedTests found = changed_tests({at("Nowhere", "", 0)}, {"/repo", {}, {}});
  EXPECT_THAT(found.changed, IsEmpty());
  EXPECT_THAT(found.undecided, IsEmpty());
}

}  // namespace
}  // namespace unflake
