#include "lifecycle/owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Owners, Of_a_file_are_those_of_the_last_rule_that_matches) {
  const Owners owners = Owners::parse("* @all\n*.cc @cpp\n/net/ @net @net2\n/net/docs/\n");
  EXPECT_THAT(owners.of("README.md"), ElementsAre("@all"));
  EXPECT_THAT(owners.of("src/a.cc"), ElementsAre("@cpp"));
  EXPECT_THAT(owners.of("net/a.cc"), ElementsAre("@net", "@net2"));
  EXPECT_THAT(owners.of("net/docs/a.md"), IsEmpty());
  EXPECT_THAT(owners.of(""), IsEmpty());
}

TEST(Owners, Patterns_are_anchored_as_in_gitignore) {
  const Owners owners =
      Owners::parse("logs @anywhere\n/build @root\napps/one @one\ndocs/* @flat\n");
  EXPECT_THAT(owners.of("a/logs/today.txt"), ElementsAre("@anywhere"));
  EXPECT_THAT(owners.of("build/x"), ElementsAre("@root"));
  EXPECT_THAT(owners.of("sub/build/x"), IsEmpty());
  EXPECT_THAT(owners.of("apps/one/main.cc"), ElementsAre("@one"));
  EXPECT_THAT(owners.of("other/apps/one/main.cc"), IsEmpty());
  EXPECT_THAT(owners.of("docs/a.md"), ElementsAre("@flat"));
  EXPECT_THAT(owners.of("docs/deep/a.md"), IsEmpty());
}

TEST(Owners, Two_stars_stand_for_any_number_of_folders) {
  const Owners owners = Owners::parse("/src/**/tests/*_test.cc @t\n**/gen @g\n");
  EXPECT_THAT(owners.of("src/tests/a_test.cc"), ElementsAre("@t"));
  EXPECT_THAT(owners.of("src/a/b/tests/a_test.cc"), ElementsAre("@t"));
  EXPECT_THAT(owners.of("src/a/b/tests/a.cc"), IsEmpty());
  EXPECT_THAT(owners.of("x/gen/y/z"), ElementsAre("@g"));
}

TEST(Owners, A_folder_is_no_file_of_its_name) {
  EXPECT_THAT(Owners::parse("docs/ @d").of("docs"), IsEmpty());
  EXPECT_THAT(Owners::parse("docs/ @d").of("a/docs/b"), ElementsAre("@d"));
}

TEST(Owners, Sections_each_add_theirs) {
  const Owners owners = Owners::parse(
      "* @all\n[Docs] @writers\n*.md\n^[Database][2] @dba\n/db/ @db mail@example.com\n!/db/gen/\n"
      "[docs]\n*.txt @late\n");
  EXPECT_THAT(owners.of("README.md"), ElementsAre("@all", "@writers"));
  EXPECT_THAT(owners.of("db/a.sql"), ElementsAre("@all", "@db", "mail@example.com"));
  EXPECT_THAT(owners.of("db/gen/a.sql"), ElementsAre("@all"));
  EXPECT_THAT(owners.of("a.txt"), ElementsAre("@all", "@late"));
}

TEST(Owners, Blanks_and_hashes_may_be_escaped_and_comments_follow_rules) {
  const Owners owners =
      Owners::parse("# all\n/with\\ blank.cc @b # why\n\\#odd @o\n\"/in quotes.cc\" @q\n");
  EXPECT_THAT(owners.of("with blank.cc"), ElementsAre("@b"));
  EXPECT_THAT(owners.of("#odd"), ElementsAre("@o"));
  EXPECT_THAT(owners.of("in quotes.cc"), ElementsAre("@q"));
}

TEST(Owners, Hostile_patterns_take_no_time) {
  std::string pattern = "/", path;
  for (int i = 0; i < 2000; ++i) pattern += "**/a*a*a*/", path += "aaaaaaaa/";
  EXPECT_THAT(Owners::parse(pattern + "b @x").of(path + "c"), IsEmpty());
}

TEST(Owners, Are_found_where_the_services_look) {
  const TempFolder folder;
  EXPECT_TRUE(load_owners(folder.path()).empty());
  std::filesystem::create_directory(folder.file(".github"));
  std::ofstream(folder.file(".github/CODEOWNERS")) << "* @github\n";
  EXPECT_THAT(load_owners(folder.path()).of("x"), ElementsAre("@github"));
}

TEST(Owners, A_files_path_is_that_of_the_repository) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("src"));
  std::ofstream(folder.file("src/a.cc")) << "\n";
  EXPECT_EQ(repository_path(folder.file("src/../src/a.cc"), folder.path()), "src/a.cc");
  EXPECT_EQ(repository_path("../src/a.cc", folder.path()), "src/a.cc");
  EXPECT_EQ(repository_path("src/a.cc", folder.path()), "src/a.cc");
  EXPECT_EQ(repository_path("../gone.cc", folder.path()), "");
  EXPECT_EQ(repository_path("/usr/include/stdio.h", folder.path()), "");
}

}  // namespace
}  // namespace unflake
