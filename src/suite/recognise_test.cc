#include <gtest/gtest.h>

#include "suite/adapter.h"
#include "support/fixtures.h"

namespace unflake {
namespace {

Framework recognised(const std::string& name) {
  const auto framework = recognise(fixture(name));
  EXPECT_TRUE(framework) << to_string(framework.error());
  return framework ? *framework : Framework::command;
}

std::string not_recognised(const std::string& path) {
  const auto framework = recognise(path);
  if (framework) return "none";
  EXPECT_EQ(framework.error().kind, ErrorKind::usage);
  return to_string(framework.error());
}

TEST(Recognise, Sees_frameworks_that_are_linked_statically) {
  EXPECT_EQ(recognised("gtest_cases"), Framework::gtest);
  EXPECT_EQ(recognised("catch2_cases"), Framework::catch2);
  EXPECT_EQ(recognised("doctest_cases"), Framework::doctest);
  EXPECT_EQ(recognised("boost_cases"), Framework::boost_test);
}

TEST(Recognise, Sees_frameworks_in_shared_libraries) {
  EXPECT_EQ(recognised("gtest_shared"), Framework::gtest);
  EXPECT_EQ(recognised("boost_shared"), Framework::boost_test);
  EXPECT_EQ(recognised("doctest_in_library"), Framework::doctest);
}

TEST(Recognise, Sees_through_stripping_and_missing_type_information) {
  EXPECT_EQ(recognised("gtest_stripped"), Framework::gtest);
  EXPECT_EQ(recognised("doctest_without_rtti"), Framework::doctest);
}

TEST(Recognise, Does_not_take_knowledge_of_frameworks_for_their_presence) {
  // This very program holds the table of evidence.
  const auto framework = recognise("/proc/self/exe");
  ASSERT_TRUE(framework);
  EXPECT_EQ(*framework, Framework::gtest);
}

TEST(Recognise, Knows_a_ctest_build_folder) {
  EXPECT_EQ(recognised("ctest_project"), Framework::ctest);
}

TEST(Recognise, Refuses_an_ordinary_program_and_says_what_to_do) {
  EXPECT_NE(not_recognised(fixture("not_a_test")).find("--framework"), std::string::npos);
}

TEST(Recognise, Refuses_a_script_and_says_what_to_do) {
  const std::string text = not_recognised(fixture("script.sh"));
  EXPECT_NE(text.find("is not an ELF executable"), std::string::npos) << text;
  EXPECT_NE(text.find("-- "), std::string::npos) << text;
}

TEST(Recognise, Suggests_a_near_name_for_a_missing_file) {
  EXPECT_NE(not_recognised(fixture("gtest_case")).find("gtest_cases"), std::string::npos);
}

TEST(Recognise, Refuses_other_files_and_folders) {
  EXPECT_NE(not_recognised(UNFLAKE_FIXTURES).find("CTestTestfile.cmake"), std::string::npos);
  EXPECT_NE(not_recognised(fixture("ctest_project/CMakeCache.txt")).find("not executable"),
            std::string::npos);
  EXPECT_NE(not_recognised("/dev/null").find("not a file"), std::string::npos);
  EXPECT_TRUE(recognise("/dev/null").error().where.empty());
}

}  // namespace
}  // namespace unflake
