#include "rebuild/changed_lines.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

constexpr const char* diff = R"(diff --git a/src/post_test.cc b/src/post_test.cc
--- a/src/post_test.cc
+++ b/src/post_test.cc
@@ -3,0 +4,2 @@ context
+#include <future>
+
@@ -10,3 +12,4 @@ TEST(Post, Delivers) {
   office.send("hello");
-  sleep_for(milliseconds(10));
+  office.wait();
+  office.close();
   EXPECT_EQ(office.delivered(), 1);
@@ -20,2 +23,1 @@
-  EXPECT_TRUE(done);
   return;
)";

const std::string file = "post_test.cc";

TEST(LineChanges, A_line_moves_by_what_was_added_and_removed_above_it) {
  const LineChanges changes(diff);
  EXPECT_EQ(changes.line_after(file, 1), 1);
  EXPECT_EQ(changes.line_after(file, 3), 3);
  EXPECT_EQ(changes.line_after(file, 4), 6);
  EXPECT_EQ(changes.line_after(file, 10), 12);
  EXPECT_EQ(changes.line_after(file, 12), 15);
  EXPECT_EQ(changes.line_after(file, 15), 18);
  EXPECT_EQ(changes.line_after(file, 21), 23);
  EXPECT_EQ(changes.line_after(file, 30), 32);
}

TEST(LineChanges, A_removed_line_is_nowhere) {
  const LineChanges changes(diff);
  EXPECT_EQ(changes.line_after(file, 11), 0);
  EXPECT_EQ(changes.line_after("/home/src/post_test.cc", 20), 0);
}

TEST(LineChanges, Other_files_stay_as_they_are) {
  const LineChanges changes(diff);
  EXPECT_EQ(changes.line_after("other.cc", 11), 11);
  EXPECT_FALSE(changes.touches("other.cc"));
  EXPECT_EQ(changes.files(), std::vector<std::string>{"src/post_test.cc"});
}

TEST(LineChanges, A_removed_file_keeps_no_line) {
  const LineChanges changes("--- a/x.cc\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n");
  EXPECT_EQ(changes.line_after("x.cc", 1), 0);
}

TEST(LineChanges, Garbage_changes_nothing) {
  for (const char* text : {"", "@@ -1 +1 @@\n+x", "--- a\n+++ b\n@@ -x +y @@\n",
                           "--- a\n+++ b\n@@ -9", "--- a\n+++ b\n@@ -1,999999 +1,1 @@\n-x"})
    EXPECT_EQ(LineChanges(text).line_after("z", 7), 7) << text;
}

std::vector<std::string> source(int lines, const std::map<int, std::string>& texts) {
  std::vector<std::string> all(static_cast<size_t>(lines), "x;");
  for (const auto& [line, text] : texts) all[static_cast<size_t>(line) - 1] = text;
  return all;
}

TEST(CheckAfter, A_check_that_the_patch_leaves_alone_is_found_at_its_new_line) {
  const CheckAfter check = check_after(LineChanges(diff), file, 12, source(30, {}));
  EXPECT_EQ(check.state, CheckAfter::State::kept);
  EXPECT_EQ(check.line, 15);
}

TEST(CheckAfter, A_check_that_was_removed_has_changed) {
  const auto lines = source(30, {{20, "  EXPECT_TRUE(done);"}});
  const CheckAfter check = check_after(LineChanges(diff), file, 20, lines);
  EXPECT_EQ(check.state, CheckAfter::State::changed);
  EXPECT_EQ(check.text, "EXPECT_TRUE(done);");
}

TEST(CheckAfter, An_edited_argument_on_another_line_of_the_check_is_a_change) {
  constexpr const char* edit =
      "--- a/x.cc\n+++ b/x.cc\n@@ -2,1 +2,1 @@\n-            1);\n+            0);\n";
  const std::vector<std::string> lines = {"  EXPECT_GE(count,", "            1);"};
  EXPECT_EQ(check_after(LineChanges(edit), "x.cc", 1, lines).state, CheckAfter::State::changed);
}

TEST(CheckAfter, A_check_that_was_only_indented_is_kept) {
  constexpr const char* edit =
      "--- a/x.cc\n+++ b/x.cc\n@@ -1,1 +1,3 @@\n-  EXPECT_EQ(a, 1);\n+  if (ready) {\n+    "
      "EXPECT_EQ(a, 1);\n+  }\n";
  const CheckAfter check = check_after(LineChanges(edit), "x.cc", 1, {"  EXPECT_EQ(a, 1);"});
  EXPECT_EQ(check.state, CheckAfter::State::kept);
  EXPECT_EQ(check.line, 2);
}

TEST(CheckAfter, A_failure_without_a_line_has_no_check) {
  EXPECT_EQ(check_after(LineChanges(diff), "", 0, {}).state, CheckAfter::State::not_known);
}

}  // namespace
}  // namespace unflake
