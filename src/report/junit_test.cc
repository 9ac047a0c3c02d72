#include "report/consumers.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>
#include <set>

#include "golden/make_events.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace golden;
namespace fs = std::filesystem;

struct JunitTest : ::testing::Test {
  TempFolder folder;
  TestPtr push = make_test("server_test", "Server.Push");

  pugi::xml_document written(const std::vector<Event>& events, bool flaky_fails = false) {
    const std::string path = folder.file("out/junit.xml");
    const auto report = JunitReport::create({path, flaky_fails});
    for (const Event& event : events) (*report)->on(event);
    EXPECT_TRUE((*report)->written());
    pugi::xml_document document;
    EXPECT_TRUE(document.load_file(path.c_str()));
    return document;
  }
  pugi::xml_node only_case(const pugi::xml_document& document) {
    return document.child("testsuites").child("testsuite").child("testcase");
  }
  RunEnded failing_push(int attempt) {
    return failing(push, attempt, assertion("server_test.cc", 42, "EXPECT_EQ(a, b)"), "s", "out\n");
  }
};

size_t children(pugi::xml_node node, const char* name) {
  const auto range = node.children(name);
  return static_cast<size_t>(std::distance(range.begin(), range.end()));
}

TEST_F(JunitTest, Names_gtest_cases_by_target_suite_and_test) {
  const auto document = written({passing(push), SessionEnded{}});
  EXPECT_STREQ(only_case(document).attribute("classname").value(), "server_test.Server");
  EXPECT_STREQ(only_case(document).attribute("name").value(), "Push");
}

TEST_F(JunitTest, Shows_a_test_whose_only_run_was_stopped_from_outside_as_not_run) {
  RunEnded cancelled = failing_push(1);
  cancelled.result.process.end = ProcessResult::End::cancelled;
  const auto document =
      written({cancelled, TestEnded{push, Verdict::not_run, {}, "interrupted"}, SessionEnded{}});
  const pugi::xml_node found = only_case(document);
  EXPECT_STREQ(found.child("skipped").attribute("message").value(), "not run: interrupted");
  EXPECT_FALSE(found.child("failure"));
  EXPECT_FALSE(found.child("system-out"));
}

TEST_F(JunitTest, Shows_failed_tries_of_a_test_that_passed_as_flaky) {
  const auto document =
      written({failing_push(1), crashing(push, 2, SIGSEGV), passing(push, 3), SessionEnded{}});
  const pugi::xml_node found = only_case(document);
  EXPECT_STREQ(found.child("flakyFailure").child_value("system-out"), "out\n");
  EXPECT_EQ(children(found, "flakyError"), 1u);
  EXPECT_FALSE(found.child("failure"));
  EXPECT_STREQ(document.child("testsuites").attribute("failures").value(), "0");
}

TEST_F(JunitTest, Shows_further_tries_of_a_test_that_failed_as_reruns) {
  const auto document = written({failing_push(1), failing_push(2), SessionEnded{}});
  const pugi::xml_node found = only_case(document);
  EXPECT_EQ(children(found, "failure"), 1u);
  EXPECT_EQ(children(found, "rerunFailure"), 1u);
  EXPECT_STREQ(document.child("testsuites").attribute("failures").value(), "1");
}

TEST_F(JunitTest, Shows_a_flaky_test_as_failed_where_the_user_wants_that) {
  const auto document = written({failing_push(1), passing(push, 2), SessionEnded{}}, true);
  EXPECT_EQ(children(only_case(document), "failure"), 1u);
  EXPECT_STREQ(document.child("testsuites").attribute("failures").value(), "1");
}

TEST_F(JunitTest, Shows_crashes_as_errors) {
  const auto document = written({crashing(push, 1, SIGSEGV), SessionEnded{}});
  EXPECT_TRUE(only_case(document).child("error"));
  EXPECT_STREQ(document.child("testsuites").attribute("errors").value(), "1");
}

TEST_F(JunitTest, Bounds_the_failures_of_a_test_and_counts_them_all) {
  std::vector<Event> events{passing(push, 1)};
  for (int i = 2; i <= 100; ++i) events.push_back(failing_push(i));
  events.push_back(SessionEnded{});
  const auto document = written(events);
  const pugi::xml_node found = only_case(document);
  EXPECT_EQ(children(found, "flakyFailure"), 10u);
  EXPECT_STREQ(found.child_value("system-out"),
               "99 of 100 runs failed; the first 10 failures are shown\n");
}

TEST_F(JunitTest, Lists_the_tests_of_an_interrupted_session_that_did_not_run_as_skipped) {
  SessionStarted session;
  session.tests = {push};
  SessionEnded end;
  end.interrupted = true;
  EXPECT_STREQ(only_case(written({session, end})).child("skipped").attribute("message").value(),
               "not run");
}

TEST_F(JunitTest, Names_stay_unique_when_different_tests_read_the_same) {
  std::vector<Event> events;
  for (const auto& [target, name] : std::vector<std::pair<std::string, std::string>>{
           {"a.b", "c"}, {"a", "b.c"}, {"a", "b\x01"}, {"a", "b\\x01"}, {"a", "b\\x01 (2)"}})
    events.push_back(passing(make_test(target, name)));
  events.push_back(passing(make_test("a", std::string(5000, 'x') + "1")));
  events.push_back(passing(make_test("a", std::string(5000, 'x') + "2")));
  events.push_back(SessionEnded{});
  const auto document = written(events);
  std::set<std::string> names;
  for (const pugi::xml_node suite : document.child("testsuites"))
    for (const pugi::xml_node found : suite.children("testcase"))
      names.insert(std::string(found.attribute("classname").value()) + "." +
                   found.attribute("name").value());
  EXPECT_EQ(names.size(), 7u);
}

TEST(JunitNames, Do_not_depend_on_the_order_of_the_tests) {
  const TestPtr one = make_test("a.b", "c"), other = make_test("a", "b.c");
  for (const auto& names : {junit_names({one, other}), junit_names({other, one})}) {
    EXPECT_EQ(names.at(other->id).name, "c");
    EXPECT_EQ(names.at(one->id).name, "c (2)");
  }
}

TEST(JunitNames, Split_where_the_framework_separates_suite_and_test) {
  const auto name_of = [](std::string name, Framework framework) {
    const TestPtr test = make_test("t", std::move(name), framework);
    const JunitName found = junit_names({test}).at(test->id);
    return found.classname + " | " + found.name;
  };
  EXPECT_EQ(name_of("All/Suite.Test/0", Framework::gtest), "t.All/Suite | Test/0");
  EXPECT_EQ(name_of("outer/inner/case", Framework::boost_test), "t.outer/inner | case");
  EXPECT_EQ(name_of("a sentence. with/all", Framework::catch2), "t | a sentence. with/all");
}

TEST(JunitNames, Leave_the_name_of_a_CTest_entry_whole) {
  unflake::Test entry = *make_test("t", "d.Sound.Generous", Framework::gtest);
  entry.is_entry = true;
  const auto names = junit_names({std::make_shared<unflake::Test>(entry)});
  EXPECT_EQ(names.at(entry.id).classname, "t");
  EXPECT_EQ(names.at(entry.id).name, "d.Sound.Generous");
}

TEST_F(JunitTest, Believes_a_verdict_without_runs) {
  const Event skipped = TestEnded{push, Verdict::skipped, {}, "disabled"};
  const auto document = written({skipped, SessionEnded{}});
  EXPECT_STREQ(only_case(document).child("skipped").attribute("message").value(), "disabled");
}

TEST_F(JunitTest, Is_well_formed_whatever_a_test_prints) {
  std::string every_byte = "]]> \xEF\xBF\xBF \xEF\xBF\xBE \xEF\xBF\xBD &amp; <![CDATA[";
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  const auto document = written({failing(make_test(every_byte, every_byte), 1,
                                         assertion(every_byte, 1, every_byte), "s", every_byte),
                                 SessionEnded{}});
  const std::string output = only_case(document).child_value("system-out");
  EXPECT_TRUE(output.starts_with("]]> ? ? \xEF\xBF\xBD &amp; <![CDATA[\\x00\\x01"));
}

TEST_F(JunitTest, Leaves_only_the_report_in_its_folder) {
  written({passing(push), SessionEnded{}});
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.file("out")))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"junit.xml"}));
}

TEST_F(JunitTest, Says_before_the_session_that_the_report_cannot_be_written) {
  std::ofstream(folder.file("file")) << "in the way";
  const auto report = JunitReport::create({folder.file("file/junit.xml"), false});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::usage);
}

TEST_F(JunitTest, Says_after_the_session_that_the_report_could_not_be_written) {
  const fs::path path = folder.file("out/junit.xml");
  const auto report = JunitReport::create({path, false});
  fs::remove_all(path.parent_path());
  (*report)->on(SessionEnded{});
  EXPECT_FALSE((*report)->written());
}

}  // namespace
}  // namespace unflake
