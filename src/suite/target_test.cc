#include "suite/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suite/program.h"
#include "support/fixtures.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Selection> resolved(std::vector<std::string> words, const KnownTargets& known = nullptr) {
  return resolve({std::move(words), {}, std::nullopt, ""}, known);
}

Test test_named(const std::string& name, bool disabled = false) {
  Test test;
  test.id = {"suite", name};
  test.disabled = disabled;
  return test;
}

const std::vector<Test> tests{test_named("A.one"), test_named("A.two"), test_named("A.off", true),
                              test_named("B.*"), test_named("B.star")};

std::vector<std::string> names(const Result<std::vector<Test>>& selected) {
  if (!selected) return {"error: " + to_string(selected.error())};
  std::vector<std::string> all;
  for (const Test& test : *selected) all.push_back(test.id.name);
  return all;
}

TEST(Resolve, Takes_a_path_and_patterns) {
  const auto selection = resolved({fixture("gtest_cases"), "A.*", "B.c"});
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->target.name, "gtest_cases");
  EXPECT_EQ(selection->target.framework, Framework::gtest);
  EXPECT_EQ(selection->target.path, fixture("gtest_cases"));
  EXPECT_THAT(selection->patterns, ElementsAre("A.*", "B.c"));
}

TEST(Resolve, Takes_a_full_id_whose_target_is_a_file) {
  const auto selection = resolved({fixture("doctest_cases") + ":suite/a: b"});
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->target.framework, Framework::doctest);
  EXPECT_THAT(selection->patterns, ElementsAre("suite/a: b"));
}

TEST(Resolve, Finds_the_target_of_an_id_in_the_history) {
  const KnownTargets known = [](const std::string& name) {
    return name == "Harbour" ? std::optional(Target{name, Framework::ctest, "/b", {}})
                             : std::nullopt;
  };
  const auto selection = resolved({"Harbour:query", "passes"}, known);
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->target.path, "/b");
  EXPECT_THAT(selection->patterns, ElementsAre("query", "passes"));
  EXPECT_TRUE(resolved({"Harbour"}, known));
}

TEST(Resolve, Is_not_misled_by_a_file_or_folder_of_the_targets_name) {
  const std::string folder = UNFLAKE_FIXTURES, file = fixture("ctest_project/CMakeCache.txt");
  for (const std::string& name : {folder, file}) {
    const KnownTargets known = [&](const std::string& asked) {
      return asked == name ? std::optional(Target{name, Framework::gtest, "/b", {}}) : std::nullopt;
    };
    const auto selection = resolved({name + ":A.b"}, known);
    ASSERT_TRUE(selection) << to_string(selection.error());
    EXPECT_EQ(selection->target.path, "/b");
    EXPECT_THAT(selection->patterns, ElementsAre("A.b"));
    EXPECT_TRUE(resolved({name}, known));
    EXPECT_FALSE(resolved({name + ":A.b"}));
  }
}

TEST(Resolve, Finds_a_plain_command_by_its_full_id) {
  const Target command{"command", Framework::command, "/p/a.sh", {"/p/a.sh", "--fast"}};
  const KnownTargets known = [&](const std::string& name) {
    return name == "command:a.sh --fast" ? std::optional(command) : std::nullopt;
  };
  const auto selection = resolved({"command:a.sh --fast"}, known);
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->target.framework, Framework::command);
  EXPECT_EQ(selection->target.argv, command.argv);
  EXPECT_TRUE(selection->patterns.empty());
  EXPECT_FALSE(resolved({"command:a.sh"}, known));
}

TEST(Resolve, Names_a_build_folder_after_its_project) {
  const auto selection = resolved({fixture("ctest_project")});
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->target.name, "Harbour");
  EXPECT_EQ(selection->target.framework, Framework::ctest);
}

TEST(Resolve, Takes_a_plain_command) {
  const auto selection = resolve({{}, {"sh", "-c", "true"}, std::nullopt, ""}, nullptr);
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->target.name, "command");
  EXPECT_THAT(selection->target.argv, ElementsAre("sh", "-c", "true"));
}

TEST(Resolve, Obeys_a_framework_and_a_name_that_are_forced) {
  const auto selection =
      resolve({{fixture("script.sh")}, {}, Framework::gtest, "my:suite"}, nullptr);
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->target.framework, Framework::gtest);
  EXPECT_EQ(selection->target.name, "my_suite");
  EXPECT_FALSE(resolve({{fixture("script.sh")}, {}, Framework::ctest, ""}, nullptr));
}

TEST(Resolve, Says_what_is_wrong) {
  EXPECT_THAT(to_string(resolved({}).error()), HasSubstr("no target"));
  EXPECT_THAT(to_string(resolved({"nowhere:A.b"}).error()), HasSubstr("'nowhere'"));
  EXPECT_THAT(to_string(resolved({"nowhere"}).error()), HasSubstr("no file nowhere"));
  EXPECT_THAT(to_string(resolve({{"./a"}, {"./b"}, std::nullopt, ""}, nullptr).error()),
              HasSubstr("give a target or a command, not both"));
}

TEST(Select, Takes_every_enabled_test_without_patterns) {
  EXPECT_THAT(names(select(tests, {}, false)), ElementsAre("A.one", "A.two", "B.*", "B.star"));
  EXPECT_EQ(names(select(tests, {}, true)).size(), 5u);
}

TEST(Select, Prefers_an_exact_name_to_its_reading_as_a_glob) {
  EXPECT_THAT(names(select(tests, {"B.*"}, false)), ElementsAre("B.*"));
  EXPECT_THAT(names(select(tests, {"A.*"}, false)), ElementsAre("A.one", "A.two"));
}

TEST(Select, Accepts_full_ids_and_keeps_listing_order_without_repeats) {
  EXPECT_THAT(names(select(tests, {"suite:A.two", "suite:A.*", "A.one"}, false)),
              ElementsAre("A.one", "A.two"));
}

TEST(Select, Takes_a_glob_without_a_colon_for_names_alone) {
  EXPECT_THAT(names(select(tests, {"*uit*"}, false)), ElementsAre(HasSubstr("no test matches")));
  EXPECT_THAT(names(select(tests, {"*uit*:*two"}, false)), ElementsAre("A.two"));
}

TEST(Select, Takes_a_disabled_test_that_is_named_exactly) {
  EXPECT_THAT(names(select(tests, {"A.off"}, false)), ElementsAre("A.off"));
  EXPECT_THAT(names(select(tests, {"A.o*"}, false)), ElementsAre("A.one"));
  EXPECT_THAT(names(select(tests, {"A.of*"}, false)), ElementsAre(HasSubstr("only disabled")));
  EXPECT_THAT(names(select(tests, {"A.of*"}, true)), ElementsAre("A.off"));
}

TEST(Select, Says_that_the_test_which_a_user_has_in_mind_is_disabled) {
  unflake::Test off = test_named("Math.DISABLED_Divides", true);
  off.disabled_reason = "its name begins with DISABLED_";
  const std::vector<unflake::Test> tests{test_named("Math.Adds"), off};
  const auto exact = select(tests, {"Math.Divides"}, false);
  ASSERT_FALSE(exact);
  EXPECT_EQ(exact.error().what, "'Math.Divides' is disabled: its name begins with DISABLED_");
  EXPECT_THAT(exact.error().next, HasSubstr("name it 'Math.DISABLED_Divides' to run it"));
  const auto near = select(tests, {"Math.Devides"}, false);
  ASSERT_FALSE(near);
  EXPECT_EQ(near.error().next, "did you mean 'Math.DISABLED_Divides' (disabled)?");
  const auto glob = select(tests, {"Math.Div*"}, false);
  ASSERT_FALSE(glob);
  EXPECT_THAT(glob.error().what, HasSubstr("only disabled tests: 'Math.DISABLED_Divides'"));
}

TEST(Select, Says_why_a_test_is_disabled_and_how_to_run_it) {
  unflake::Test off = test_named("A.off", true);
  off.disabled_reason = "marked with skip()";
  for (const std::vector<std::string>& patterns : {std::vector<std::string>{}, {"A.*"}}) {
    const auto selected = select({off}, patterns, false);
    ASSERT_FALSE(selected);
    EXPECT_THAT(selected.error().what, HasSubstr("'A.off' (marked with skip())"));
    EXPECT_TRUE(selected.error().where.empty());
    EXPECT_THAT(selected.error().next, HasSubstr("--include-disabled"));
  }
}

TEST(Select, Names_the_pattern_that_matches_nothing_and_suggests) {
  EXPECT_THAT(names(select(tests, {"A.one", "A.tow"}, false)),
              ElementsAre(testing::AllOf(HasSubstr("'A.tow'"), HasSubstr("'A.two'"))));
  EXPECT_THAT(names(select(tests, {"Zebra"}, false)), ElementsAre(HasSubstr("`unflake list ")));
}

TEST(Select, Survives_hostile_names) {
  const std::vector<unflake::Test> hostile{test_named(std::string(1 << 20, 'x')),
                                           test_named("a\x1b[2J\n\xff")};
  EXPECT_EQ(names(select(hostile, {"a\x1b*"}, false)).size(), 1u);
  const auto missing = names(select(hostile, {std::string(1 << 20, 'y')}, false));
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_LT(missing[0].size(), 1000u);
  EXPECT_EQ(names(select(hostile, {"a\x1b[2J\n\xfe"}, false))[0].find('\x1b'), std::string::npos);
}

Result<std::vector<unflake::Test>> narrowed(const std::vector<std::string>& patterns,
                                            const std::vector<std::string>& sets,
                                            const std::vector<std::string>& excluded) {
  Restriction restriction{{}, excluded};
  for (const std::string& text : sets) restriction.sets.push_back(*TestSet::parse(text));
  const auto chosen = select(tests, patterns, false);
  if (!chosen) return chosen.error();
  return narrow(tests, *chosen, restriction);
}

TEST(Narrow, Leaves_out_what_is_excluded) {
  EXPECT_THAT(names(narrowed({}, {}, {"A.*", "suite:B.star"})), ElementsAre("B.*"));
  EXPECT_THAT(names(narrowed({"A.off"}, {}, {"B.*"})), ElementsAre("A.off"));
  EXPECT_THAT(names(narrowed({"A.*"}, {}, {"A.t*", "*one"})),
              ElementsAre(HasSubstr("all 2 that are chosen")));
  EXPECT_THAT(names(narrowed({"A.one"}, {}, {"*"})), ElementsAre(HasSubstr("'A.one'")));
}

TEST(Narrow, Keeps_what_is_in_any_set_and_meant_by_the_patterns_and_not_excluded) {
  EXPECT_THAT(names(narrowed({}, {"name(A.*)"}, {})), ElementsAre("A.one", "A.two"));
  EXPECT_THAT(names(narrowed({}, {"name(A.one)", "name(~star)"}, {})),
              ElementsAre("A.one", "B.star"));
  EXPECT_THAT(names(narrowed({"A.*"}, {"name(~t)"}, {})), ElementsAre("A.two"));
  EXPECT_THAT(names(narrowed({}, {"all()"}, {"*.*o*"})), ElementsAre("B.*", "B.star"));
}

TEST(Narrow, Says_why_a_set_has_no_tests) {
  EXPECT_THAT(
      names(narrowed({}, {"name(A.tow)"}, {})),
      ElementsAre(testing::AllOf(HasSubstr("no test is in name(A.tow)"), HasSubstr("'A.two'"))));
  EXPECT_THAT(names(narrowed({}, {"name(A.off)"}, {})), ElementsAre(HasSubstr("only disabled")));
  EXPECT_THAT(names(narrowed({"A.*"}, {"name(~star)"}, {})),
              ElementsAre(HasSubstr("the names after the target")));
  EXPECT_THAT(names(narrowed({}, {"name(A.*) - name(A.*)"}, {})),
              ElementsAre(HasSubstr("none for all")));
}

TEST(Narrow, Tells_parts_that_match_nothing) {
  const Restriction restriction{{*TestSet::parse("all() - name(C.*)")}, {"A.*", "C.one"}};
  const auto parts = unmatched_parts(tests, restriction);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].what, "no test is in name(C.*)");
  EXPECT_EQ(parts[1].what, "--exclude 'C.one' matches no test");
  EXPECT_THAT(parts[1].next, HasSubstr("'A.one'"));
}

TEST(UniqueIds, Number_duplicates_without_taking_a_name_that_exists) {
  std::vector<unflake::Test> twins{test_named("a"), test_named("a"), test_named("a #2"),
                                   test_named("a")};
  make_ids_unique(twins);
  EXPECT_THAT(names(twins), ElementsAre("a", "a #3", "a #2", "a #4"));
}

}  // namespace
}  // namespace unflake
