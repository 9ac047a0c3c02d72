#include "web/issue_plan.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

IssueMarks marks_of_seven() {
  IssueMarks marks;
  marks.cause = 7;
  marks.project = "acme/rocket";
  marks.signatures = {"00000000000000aa", "00000000000000bb"};
  marks.owner = "@acme/pilots";
  marks.expiry = "2026-03-01";
  return marks;
}

TEST(IssueText, Marks_are_read_back) {
  EXPECT_EQ(marks_in("Hello\n\n" + marked_part(marks_of_seven(), "text", 10'000) + "\nBye"),
            marks_of_seven());
}

TEST(IssueText, Hostile_names_do_not_end_a_mark) {
  IssueMarks marks = marks_of_seven();
  marks.project = "--> <script>:,%";
  marks.owner = ":--> @everybody\n<!-- unflake:end -->";
  EXPECT_EQ(marks_in(marked_part(marks, "", 10'000)), marks);
}

TEST(IssueText, What_people_wrote_stays) {
  const std::string first =
      with_part("Seen on my machine.", marked_part(marks_of_seven(), "former figures", 10'000));
  const std::string second =
      with_part(first + "\nMe too.", marked_part(marks_of_seven(), "later figures", 10'000));
  EXPECT_TRUE(second.starts_with("Seen on my machine."));
  EXPECT_TRUE(second.ends_with("\nMe too."));
  EXPECT_EQ(second.find("former figures"), std::string::npos);
  EXPECT_NE(second.find("later figures"), std::string::npos);
}

TEST(IssueText, The_same_part_again_changes_nothing) {
  const std::string part = marked_part(marks_of_seven(), "text", 10'000);
  const std::string body = with_part("Hello", part);
  EXPECT_EQ(with_part(body, part), body);
  EXPECT_EQ(body.size(), size_without_part(body) + part.size());
  EXPECT_EQ(body.size(), size_without_part("Hello") + part.size());
}

TEST(IssueText, A_text_that_is_too_long_is_cut_between_paragraphs) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "A paragraph of some length.\n\n";
  const std::string part = marked_part(marks_of_seven(), text, 5'000);
  EXPECT_LE(part.size(), 5'000u);
  EXPECT_NE(part.find("length.\n\n(The rest is left out"), std::string::npos);
  EXPECT_EQ(marks_in(part), marks_of_seven());
}

TEST(IssueText, A_body_without_marks_has_none) {
  for (const char* body : {"", "<!-- unflake:end -->", "<!-- unflake:cause:1:x -->",
                           "<!-- unflake:end --><!-- unflake:cause:1:x -->",
                           "<!-- unflake:cause:<!-- unflake:end -->", "% %4 %zz"})
    EXPECT_FALSE(marks_in(body)) << body;
}

}  // namespace
}  // namespace unflake
