#include "markdown.h"

#include <gtest/gtest.h>

namespace unflake::eval {
namespace {

const std::string document = "# Title\n\n## One\n\nfirst\n\n## Two\n\nsecond\n";

TEST(Markdown, Escapes_what_would_end_a_cell) {
  EXPECT_EQ(row({"a|b", ""}), "| a\\|b | - |\n");
}

TEST(Section, Reaches_to_the_next_heading_or_to_the_end) {
  EXPECT_EQ(section_of(document, "## One"), "## One\n\nfirst\n\n");
  EXPECT_EQ(section_of(document, "## Two"), "## Two\n\nsecond\n");
  EXPECT_EQ(section_of(document, "## Tw"), "");
}

TEST(Section, Holds_its_own_subsections) {
  EXPECT_EQ(section_of("## A\n### B\nb\n## C\n", "## A"), "## A\n### B\nb\n");
}

TEST(Section, Is_replaced_where_it_stands_and_else_comes_last) {
  EXPECT_EQ(with_section(document, "## Two", "## Two\n\nnew\n"),
            "# Title\n\n## One\n\nfirst\n\n## Two\n\nnew\n");
  EXPECT_EQ(with_section("# Title\n", "## Two", "## Two\n"), "# Title\n\n## Two\n");
}

TEST(Section, That_is_empty_changes_nothing) {
  EXPECT_EQ(with_section(document, "## Two", ""), document);
}

}  // namespace
}  // namespace unflake::eval
