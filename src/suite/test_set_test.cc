#include "suite/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

unflake::Test make(const std::string& name, std::vector<std::string> labels = {},
                   const std::string& suite = "", const std::string& file = "") {
  unflake::Test test;
  test.id = {"server_test", name};
  test.labels = std::move(labels);
  test.suite = suite;
  test.file = file;
  return test;
}

const std::vector<unflake::Test> in_set{
    make("Server.Push", {"net", "fast"}, "Server", "/home/me/src/server/push_test.cc"),
    make("Server.PushLive", {"net"}, "Server", "/home/me/src/server/push_test.cc"),
    make("Client.Connects", {"slow"}, "Client", "client_test.cc"),
    make("sums (of) numbers"),
};

std::vector<std::string> in(const std::string& text) {
  const auto set = TestSet::parse(text);
  if (!set) return {to_string(set.error())};
  std::vector<std::string> names;
  for (const unflake::Test& test : in_set)
    if (set->contains(test)) names.push_back(test.id.name);
  return names;
}

Error error_of(const std::string& text) {
  const auto set = TestSet::parse(text);
  EXPECT_FALSE(set) << text;
  return set ? Error{} : set.error();
}

TEST(TestSet, Matches_names_and_ids_as_globs_unless_told_otherwise) {
  EXPECT_THAT(in("name(Server.*)"), ElementsAre("Server.Push", "Server.PushLive"));
  EXPECT_THAT(in("name(server_test:Server.Pus?)"), ElementsAre("Server.Push"));
  EXPECT_THAT(in("name(Server)"), IsEmpty());
  EXPECT_THAT(in("name(*server_*)"), IsEmpty());
  EXPECT_THAT(in("name(~server_)"), IsEmpty());
  EXPECT_THAT(in("name(=server_test:Server.Push)"), ElementsAre("Server.Push"));
  EXPECT_THAT(in("name(=Server.Push)"), ElementsAre("Server.Push"));
  EXPECT_THAT(in("name(=Server.*)"), IsEmpty());
  EXPECT_THAT(in("name(~Push)"), ElementsAre("Server.Push", "Server.PushLive"));
  EXPECT_THAT(in("name(/^(Client|Server)[.][A-Z][a-z]+$/)"),
              ElementsAre("Server.Push", "Client.Connects"));
}

TEST(TestSet, Asks_for_targets_labels_suites_and_files) {
  EXPECT_EQ(in("target(server*)").size(), 4u);
  EXPECT_THAT(in("label(net)"), ElementsAre("Server.Push", "Server.PushLive"));
  EXPECT_THAT(in("tag(slow)"), ElementsAre("Client.Connects"));
  EXPECT_THAT(in("suite(Client)"), ElementsAre("Client.Connects"));
  EXPECT_THAT(in("file(push_test.cc)"), ElementsAre("Server.Push", "Server.PushLive"));
  EXPECT_THAT(in("file(server/*)"), ElementsAre("Server.Push", "Server.PushLive"));
  EXPECT_THAT(in("file(/home/*/push_test.cc)"), ElementsAre("Server.Push", "Server.PushLive"));
  EXPECT_THAT(in("file(ush_test.cc)"), IsEmpty());
  EXPECT_EQ(in("all()").size(), 4u);
  EXPECT_THAT(in("none( )"), IsEmpty());
}

TEST(TestSet, Binds_not_before_and_before_or) {
  EXPECT_THAT(in("label(slow) or label(net) and not name(*Live)"),
              ElementsAre("Server.Push", "Client.Connects"));
  EXPECT_THAT(in("(label(slow) or label(net)) and not name(*Live)"),
              ElementsAre("Server.Push", "Client.Connects"));
  EXPECT_THAT(in("not label(net) and not label(slow)"), ElementsAre("sums (of) numbers"));
  EXPECT_THAT(in("not (label(net) or label(slow))"), ElementsAre("sums (of) numbers"));
  EXPECT_THAT(in("not not label(slow)"), ElementsAre("Client.Connects"));
}

TEST(TestSet, Takes_signs_for_words) {
  EXPECT_THAT(in("label(net)-name(*Live)"), ElementsAre("Server.Push"));
  EXPECT_THAT(in("label(net)&!name(*Live)|label(slow)"),
              ElementsAre("Server.Push", "Client.Connects"));
  EXPECT_THAT(in("label(fast)+label(slow)"), ElementsAre("Server.Push", "Client.Connects"));
  EXPECT_THAT(in("label(fast) || label(slow) && all()"),
              ElementsAre("Server.Push", "Client.Connects"));
  EXPECT_THAT(in("all() - label(net) - label(slow)"), ElementsAre("sums (of) numbers"));
}

TEST(TestSet, Takes_parentheses_in_pairs_or_behind_a_backslash) {
  EXPECT_THAT(in("name(sums (of) *)"), ElementsAre("sums (of) numbers"));
  EXPECT_THAT(in("name(~\\(of)"), ElementsAre("sums (of) numbers"));
  EXPECT_THAT(in("name(/\\(of\\)/)"), ElementsAre("sums (of) numbers"));
  EXPECT_THAT(in("name( /a.b\\/c/ ) or label(slow)"), ElementsAre("Client.Connects"));
}

TEST(TestSet, Points_at_the_column_of_a_mistake_and_says_what_is_expected) {
  const Error error = error_of("name(Server.*) adn label(x)");
  EXPECT_EQ(error.kind, ErrorKind::usage);
  EXPECT_EQ(error.where, "-E, column 16");
  EXPECT_EQ(error.what,
            "there is 'adn' where `and`, `or`, `-` or the end is expected\n"
            "  name(Server.*) adn label(x)\n"
            "                 ^");
  EXPECT_THAT(error_of("name(größe) und all()").where, HasSubstr("column 13"));
  EXPECT_THAT(error_of("").what, HasSubstr("the set ends where a predicate"));
  EXPECT_THAT(error_of("name(a) and").where, HasSubstr("column 12"));
  EXPECT_THAT(error_of("Server.*").what, HasSubstr("no predicate 'Server'"));
  EXPECT_THAT(error_of("(name(a)").what, HasSubstr("or `)` is expected"));
  EXPECT_THAT(error_of("name(a").what, HasSubstr("never closed"));
  EXPECT_THAT(error_of("name()").what, HasSubstr("a glob, =exact, ~contains or /regex/"));
  EXPECT_THAT(error_of("name(=)").what, HasSubstr("a glob, =exact"));
  EXPECT_THAT(error_of("name").what, HasSubstr("`(` after `name`"));
  EXPECT_THAT(error_of("all(x)").what, HasSubstr("take nothing"));
  EXPECT_THAT(error_of("name(/a[/)").what, HasSubstr("not a regular expression: "));
}

TEST(TestSet, Suggests_a_predicate_for_a_misspelt_one) {
  EXPECT_EQ(error_of("lable(slow)").next, "did you mean 'label'?");
  EXPECT_THAT(error_of("xyzzy(slow)").next, AllOf(HasSubstr("known are: "), HasSubstr("suite")));
}

TEST(TestSet, Says_what_there_is_for_a_part_that_no_test_is_in) {
  const auto set = TestSet::parse("label(lsow) or suite(Peer) or name(Server.Psuh) or all()");
  ASSERT_TRUE(set);
  const auto unmatched = set->unmatched_parts(in_set);
  ASSERT_EQ(unmatched.size(), 3u);
  EXPECT_EQ(unmatched[0].what, "no test is in label(lsow)");
  EXPECT_EQ(unmatched[0].next, "did you mean 'slow'? the labels here are 'fast', 'net', 'slow'");
  EXPECT_EQ(unmatched[1].next, "the suites here are 'Client', 'Server'");
  EXPECT_THAT(unmatched[2].next, HasSubstr("did you mean 'Server.Push'"));
  EXPECT_EQ(TestSet::parse("tag(x)")->unmatched_parts({make("a")})[0].next,
            "the target tells no labels of its tests");
}

TEST(TestSet, Knows_whether_it_needs_labels) {
  EXPECT_TRUE(TestSet::parse("not (name(a) - tag(b))")->needs_labels());
  EXPECT_FALSE(TestSet::parse("name(label)")->needs_labels());
}

TEST(TestSet, Survives_hostile_texts) {
  EXPECT_FALSE(TestSet::parse(std::string(1 << 20, '(')));
  EXPECT_THAT(error_of(std::string(200, '(') + "all()").what, HasSubstr("more than 100"));
  std::string chain = "all()";
  for (int i = 0; i < 2000; ++i) chain += "|all()";
  EXPECT_EQ(in(chain).size(), 4u);
  std::string nots;
  for (int i = 0; i < 8000; ++i) nots += '!';
  EXPECT_EQ(in(nots + "all()").size(), 4u);
  for (const std::string text :
       {"\x1b[2J\xff", "name(\x1b", "name(\\", "name(/\\", "!", "-", "||", "name(/a", ")"}) {
    const Error error = error_of(text);
    EXPECT_THAT(error.what, Not(HasSubstr("\x1b"))) << text;
    EXPECT_THAT(error.where, HasSubstr("column")) << text;
  }
  EXPECT_LT(error_of("name(" + std::string(10'000, 'x')).what.size(), 500u);
}

}  // namespace
}  // namespace unflake
