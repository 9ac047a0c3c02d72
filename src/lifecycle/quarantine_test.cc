#include "lifecycle/quarantine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* path = "quarantine.toml";

QuarantineEntry entry(const std::string& name, const std::string& signature = "1111111111111111") {
  QuarantineEntry one;
  one.test = {"server_test", name};
  one.signature = signature;
  one.failure = "server_test.cc:42: a == \"b\"";
  one.reason = "races with the\nacceptor";
  one.owner = "@net";
  one.issue = "https://example.com/1";
  one.since = *parse_day("2026-03-01");
  one.expires = *parse_day("2026-03-31");
  one.commit = "0123abc";
  return one;
}

std::string file_with(const std::vector<QuarantineEntry>& entries) {
  std::string text;
  for (const QuarantineEntry& one : entries) text = *with_entry(text, path, one);
  return text;
}

std::vector<std::string> names(const Quarantine& quarantine) {
  std::vector<std::string> found;
  for (const QuarantineEntry& one : quarantine.entries()) found.push_back(one.test.name);
  return found;
}

std::string complaint(std::string_view text) {
  const auto quarantine = parse_quarantine(text, path);
  return quarantine ? "" : to_string(quarantine.error());
}

std::string minimal(const std::string& more = "", const std::string& since = "2026-03-01",
                    const std::string& expires = "2026-03-31") {
  return "[[test]]\nid = \"a:b\"\nsignature = \"1111111111111111\"\nsince = " + since +
         "\nexpires = " + expires + "\n" + more;
}

TEST(QuarantineFile, Gives_back_what_was_put_in) {
  const auto quarantine = parse_quarantine(file_with({entry("A"), entry("B")}), path);
  ASSERT_TRUE(quarantine) << to_string(quarantine.error());
  ASSERT_EQ(quarantine->entries().size(), 2u);
  EXPECT_EQ(quarantine->entries()[0], entry("A"));
  EXPECT_EQ(*quarantine->find({"server_test", "B"}, "1111111111111111"), entry("B"));
  EXPECT_EQ(quarantine->find({"server_test", "B"}, "2222222222222222"), nullptr);
}

TEST(QuarantineFile, Has_one_key_a_line) {
  EXPECT_THAT(file_with({entry("A")}),
              HasSubstr("format = 1\n\n[[test]]\nid = \"server_test:A\"\nsignature = "
                        "\"1111111111111111\"\nfailure = \"server_test.cc:42: a == \\\"b\\\"\"\n"
                        "reason = \"races with the\\u000aacceptor\"\nowner = \"@net\"\n"
                        "issue = \"https://example.com/1\"\nsince = 2026-03-01\n"
                        "expires = 2026-03-31\ncommit = \"0123abc\"\n"));
}

TEST(QuarantineFile, Is_sorted_whatever_the_order_of_additions) {
  const std::string one = file_with({entry("A"), entry("B"), entry("C")});
  EXPECT_EQ(file_with({entry("C"), entry("A"), entry("B")}), one);
  EXPECT_EQ(file_with({entry("B"), entry("C"), entry("A")}), one);
}

TEST(QuarantineFile, Does_not_change_when_an_entry_is_put_in_again) {
  const std::string text = "# ours\n\n\n" + minimal("\n\n# the end");
  const auto quarantine = parse_quarantine(text, path);
  EXPECT_EQ(*with_entry(text, path, quarantine->entries()[0]), text);
  EXPECT_EQ(*without_entries(text, path, [](const auto&) { return false; }), text);
}

TEST(QuarantineFile, Keeps_comments_and_order_that_people_wrote) {
  const std::string text =
      "# house rules\n\nformat = 1\n\n# about Z\n" +
      file_with({entry("Z")}).substr(file_with({entry("Z")}).find("[[test]]")) + "\n# about A\n" +
      file_with({entry("A")}).substr(file_with({entry("A")}).find("[[test]]")) + "# last words\n";
  const std::string more = *with_entry(text, path, entry("M"));
  EXPECT_THAT(more, HasSubstr("# about Z\n[[test]]\nid = \"server_test:Z\""));
  EXPECT_THAT(more, HasSubstr("# about A\n[[test]]\nid = \"server_test:A\""));
  const std::string less =
      *without_entries(more, path, [](const auto& one) { return one.test.name == "M"; });
  EXPECT_EQ(less, text);
}

TEST(QuarantineFile, Loses_an_entry_with_the_comment_above_it) {
  std::string text = file_with({entry("A"), entry("B"), entry("C")});
  const std::string without = file_with({entry("A"), entry("C")});
  text.insert(text.find("[[test]]\nid = \"server_test:B\""), "# why B\n");
  EXPECT_EQ(*without_entries(text, path, [](const auto& one) { return one.test.name == "B"; }),
            without);
}

TEST(QuarantineFile, Replaces_an_entry_in_its_place_and_keeps_the_comment_above) {
  std::string text = file_with({entry("A"), entry("B"), entry("C")});
  text.insert(text.find("[[test]]\nid = \"server_test:B\""), "# why B\n");
  QuarantineEntry longer = entry("B");
  longer.expires = *parse_day("2026-04-30");
  std::string expected = text;
  const size_t at = expected.find("2026-03-31", expected.find("server_test:B"));
  expected.replace(at, 10, "2026-04-30");
  EXPECT_EQ(*with_entry(text, path, longer), expected);
}

TEST(QuarantineFile, A_header_in_a_text_is_no_header) {
  const std::string text = minimal("reason = \"\"\"\n[[test]]\nid = 'x'\n\"\"\"\n");
  const std::string more = *with_entry(text, path, entry("A"));
  EXPECT_THAT(names(*parse_quarantine(more, path)), ElementsAre("b", "A"));
  EXPECT_TRUE(more.starts_with(text));
}

TEST(QuarantineFile, Additions_of_two_branches_at_different_places_do_not_touch) {
  const std::string base = file_with({entry("D"), entry("M")});
  const std::string ours = *with_entry(base, path, entry("A"));
  const std::string theirs = *with_entry(base, path, entry("Z"));
  const size_t d = ours.find("[[test]]\nid = \"server_test:D\"");
  EXPECT_EQ(ours.substr(d), base.substr(base.find("[[test]]\nid = \"server_test:D\"")));
  EXPECT_TRUE(theirs.starts_with(base));
}

TEST(QuarantineFile, May_be_empty_or_missing) {
  EXPECT_TRUE(parse_quarantine("", path)->entries().empty());
  EXPECT_TRUE(parse_quarantine("# nothing yet\n", path)->entries().empty());
  const TempFolder folder;
  EXPECT_TRUE(load_quarantine(folder.file("none.toml"))->entries().empty());
}

TEST(QuarantineFile, Says_what_is_wrong_and_where) {
  EXPECT_THAT(complaint("<<<<<<< HEAD\n[[test]]\n=======\n>>>>>>> theirs\n"),
              HasSubstr("conflicting edits that were not resolved (quarantine.toml, line 1)"));
  EXPECT_THAT(complaint("format = 2\n"), HasSubstr("format 2, this unflake knows 1"));
  EXPECT_THAT(complaint("format = \"1\"\n"), HasSubstr("'format' must be 1"));
  EXPECT_THAT(complaint("tests = 1\n"), HasSubstr("no setting 'tests' here"));
  EXPECT_THAT(complaint("test = [{id = \"a:b\"}]\n"), HasSubstr("entries as [[test]]"));
  EXPECT_THAT(complaint("[test]\nid = \"a:b\"\n"), HasSubstr("entries as [[test]]"));
  EXPECT_THAT(complaint("[[test]]\nid = \"a:b\n"), HasSubstr("not valid TOML"));
  EXPECT_THAT(complaint("[[test]]\n"), HasSubstr("an entry has no 'id'"));
  EXPECT_THAT(
      complaint(minimal("ownr = \"x\"\n")),
      HasSubstr("no key 'ownr' (quarantine.toml, line 6, column 8); did you mean 'owner'?"));
  EXPECT_THAT(complaint(minimal("owner = 1\n")), HasSubstr("'owner' must be a text in quotes"));
  EXPECT_THAT(complaint(minimal("", "\"yesterday\"")), HasSubstr("'since' must be a day"));
  EXPECT_THAT(complaint(minimal("", "2026-04-01")),
              HasSubstr("expires before it began (quarantine.toml, line 5"));
  EXPECT_THAT(complaint(minimal() + "\n" + minimal()),
              HasSubstr("signature 1111111111111111 of a:b is here twice; first in line 1"));
}

TEST(QuarantineFile, Takes_days_in_quotes_too) {
  EXPECT_EQ(complaint(minimal("", "\"2026-03-01\"", "\"2026-03-02\"")), "");
}

TEST(QuarantineFile, Refuses_what_it_could_not_read_back) {
  QuarantineEntry odd = entry("A");
  odd.test.name = "name \xff";
  EXPECT_FALSE(with_entry("", path, odd));
  odd = entry("quote \" and \\ and \x1b[2J");
  EXPECT_TRUE(with_entry("", path, odd));
}

std::string read(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(QuarantineFile, Loses_no_entry_when_many_processes_add_at_once) {
  const TempFolder folder;
  const std::string file = folder.file("quarantine.toml");
  constexpr int writers = 5, each = 5;
  std::vector<pid_t> children;
  for (int writer = 0; writer < writers; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool ok = true;
      for (int i = 0; i < each; ++i)
        ok = ok && edit_quarantine(file, [&](const std::string& text) {
               return with_entry(text, file, entry(fmt::format("T{}.{}", writer, i)));
             });
      ::_exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(load_quarantine(file)->entries().size(), size_t{writers * each});
}

TEST(QuarantineFile, Is_read_again_when_it_changed_while_it_was_edited) {
  const TempFolder folder;
  const std::string file = folder.file("quarantine.toml");
  int asked = 0;
  const auto edited = edit_quarantine(file, [&](const std::string& text) {
    if (++asked == 1) std::ofstream(file) << file_with({entry("Of somebody else")});
    return with_entry(text, file, entry("Ours"));
  });
  ASSERT_TRUE(edited);
  EXPECT_EQ(asked, 2);
  EXPECT_THAT(names(*load_quarantine(file)), ElementsAre("Of somebody else", "Ours"));
}

TEST(QuarantineFile, Stays_as_it_is_when_the_edit_fails_and_leaves_nothing_beside_it) {
  const TempFolder folder;
  const std::string file = folder.file("quarantine.toml");
  std::ofstream(file) << "format = 9\n";
  EXPECT_FALSE(edit_quarantine(
      file, [&](const std::string& text) { return with_entry(text, file, entry("A")); }));
  EXPECT_EQ(read(file), "format = 9\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(QuarantineFile, Behind_a_link_stays_behind_it) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("real"));
  std::ofstream(folder.file("real/q.toml")) << "";
  std::filesystem::create_symlink(folder.file("real/q.toml"), folder.file("link.toml"));
  ASSERT_TRUE(edit_quarantine(folder.file("link.toml"), [&](const std::string& text) {
    return with_entry(text, path, entry("A"));
  }));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link.toml")));
  EXPECT_EQ(load_quarantine(folder.file("real/q.toml"))->entries().size(), 1u);
}

}  // namespace
}  // namespace unflake
