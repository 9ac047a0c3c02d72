#include "study/study.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(Fix_place, Knows_test_code_by_its_folder_or_its_name) {
  for (const char* path :
       {"tests/a.cc", "src/net/test/a.cc", "lib/testing/a.h", "a_test.cc", "src/test_a.py",
        "src/ServerTest.java", "ui/list.spec.ts", "pkg/a_test.go", "net_tests/a.cc", "tst_a.cpp"})
    EXPECT_TRUE(is_test_path(path)) << path;
  for (const char* path : {"src/a.cc", "src/contest.cc", "latest/a.cc", "src/attestation.cc",
                           "src/testament.h", "main.cc", ""})
    EXPECT_FALSE(is_test_path(path)) << path;
}

TEST(Fix_place, Is_where_the_code_was_changed) {
  EXPECT_EQ(fix_place({"src/a.cc", "src/a.h"}, {}), FixPlace::source);
  EXPECT_EQ(fix_place({"tests/a.cc"}, {}), FixPlace::test);
  EXPECT_EQ(fix_place({"src/a.cc", "src/a_test.cc"}, {}), FixPlace::both);
}

TEST(Fix_place, A_file_that_is_no_code_makes_it_other) {
  EXPECT_EQ(fix_place({"src/a_test.cc", "tests/data.json"}, {}), FixPlace::other);
  EXPECT_EQ(fix_place({"CMakeLists.txt"}, {}), FixPlace::other);
  EXPECT_EQ(fix_place({}, {}), FixPlace::other);
}

TEST(Fix_place, What_only_people_read_does_not_count) {
  EXPECT_EQ(fix_place({"src/a_test.cc", "CHANGELOG.md"}, {}), FixPlace::test);
  EXPECT_EQ(fix_place({"README.md"}, {}), FixPlace::other);
}

TEST(Fix_place, A_file_in_which_a_test_failed_is_test_code) {
  EXPECT_EQ(fix_place({"checks/server.cc"}, {"/home/me/project/checks/server.cc"}), FixPlace::test);
  EXPECT_EQ(fix_place({"checks/server.cc"}, {"/home/me/morechecks/server.cc"}), FixPlace::source);
}

}  // namespace
}  // namespace unflake
