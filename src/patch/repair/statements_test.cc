#include "patch/repair/statements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::HasSubstr;

// The source has declarations of its own in front; `@` ends the line that is meant.
class Statements : public testing::Test {
 protected:
  std::string before(const std::string& code, const std::string& function = "") {
    return edited(code, [&](const SourceUnit& unit, int line) {
      return point_before(unit, unit.file(), line, function);
    });
  }
  std::string after(const std::string& code, const std::string& function = "",
                    bool each_time = false) {
    return edited(code, [&](const SourceUnit& unit, int line) {
      return point_after(unit, unit.file(), line, function, each_time);
    });
  }

  template <class Find>
  std::string edited(std::string code, Find find) {
    const std::string head =
        "struct Guard { ~Guard(); }; void act(); int get(); extern bool yes;" + line_end + prelude;
    std::string text = byte_order_mark + head + code;
    const size_t mark = text.find('@');
    const int line = 1 + static_cast<int>(std::count(text.begin(),
                                                     text.begin() + static_cast<long>(mark), '\n'));
    text.erase(mark, 1);
    const std::string file = folder.file(name);
    std::ofstream(file, std::ios::binary) << text;
    const auto unit = source_unit(file, "");
    if (!unit) return to_string(unit.error());
    const auto point = find(**unit, line);
    if (!point) return to_string(point.error());
    note = point->note;
    const auto edits = insertion(**unit, *point, point->at_end_of_block ? "Guard g;" : "act();");
    auto result = edited_text(text, edits);
    if (auto tried = (*unit)->try_edits(edits); !tried) return to_string(tried.error());
    (*unit)->restore();
    return result ? result->substr(byte_order_mark.size() + head.size())
                  : to_string(result.error());
  }

  TempFolder folder;
  std::string name = "code.cc";
  std::string prelude, byte_order_mark, line_end = "\n";
  std::string note;
};

TEST_F(Statements, A_function_with_a_made_up_name_is_told_from_a_lambda_on_its_line) {
  const std::string code =
      "template <class T> void run(T);\nvoid test_4() {\n  run([] { get(); });@\n}\n";
  EXPECT_EQ(
      before(code, "test_2"),
      "template <class T> void run(T);\nvoid test_4() {\n  act();\n  run([] { get(); });\n}\n");
  EXPECT_EQ(before(code, "test_4::{lambda}"),
            "template <class T> void run(T);\nvoid test_4() {\n  run([] { act(); get(); });\n}\n");
}

TEST_F(Statements, Lines_are_put_before_and_after_with_the_same_indentation) {
  EXPECT_EQ(before("void f() {\n\tget();\n\tget();@\n}\n"),
            "void f() {\n\tget();\n\tact();\n\tget();\n}\n");
  EXPECT_EQ(after("void f() {\n    get(); // why@\n}\n"),
            "void f() {\n    get(); // why\n    act();\n}\n");
}

TEST_F(Statements, A_statement_of_several_lines_is_not_cut) {
  const std::string call =
      "void f() {\n  int x = get() +\n      get() +@\n      get();\n  (void)x;\n}\n";
  EXPECT_THAT(before(call), HasSubstr("{\n  act();\n  int x"));
  EXPECT_THAT(after(call), HasSubstr("      get();\n  act();\n  (void)x"));
}

TEST_F(Statements, Branches_without_braces_get_them) {
  EXPECT_EQ(before("void f() {\n  if (yes)\n    get();@\n  get();\n}\n"),
            "void f() {\n  if (yes) {\n    act();\n    get();\n  }\n  get();\n}\n");
  EXPECT_EQ(
      after("void f() {\n  for (int i = 0; i < 3; ++i)  // thrice\n    get();@\n}\n"),
      "void f() {\n  for (int i = 0; i < 3; ++i) {  // thrice\n    get();\n    act();\n  }\n}\n");
  EXPECT_EQ(after("void f() {\n  if (yes)\n    get();\n  else\n    get();@\n}\n"),
            "void f() {\n  if (yes)\n    get();\n  else {\n    get();\n    act();\n  }\n}\n");
  EXPECT_EQ(after("void f() {\n  while (yes) get();@\n}\n", "", true),
            "void f() {\n  while (yes) {\n    get();\n    act();\n  }\n}\n");
  EXPECT_EQ(after("void f() {\n  do\n    get();@\n  while (yes);\n}\n"),
            "void f() {\n  do {\n    get();\n    act();\n  }\n  while (yes);\n}\n");
}

TEST_F(Statements, A_statement_of_one_line_is_left_whole) {
  EXPECT_EQ(before("void f() {\n  if (yes) get();@\n}\n"),
            "void f() {\n  act();\n  if (yes) get();\n}\n");
  EXPECT_EQ(after("void f() {\n  for (int i = 0; i < 2; ++i) get();@\n}\n"),
            "void f() {\n  for (int i = 0; i < 2; ++i) get();\n  act();\n}\n");
  EXPECT_EQ(before("void f() {\n  if (yes) get(); else get();@\n}\n"),
            "void f() {\n  act();\n  if (yes) get(); else get();\n}\n");
}

TEST_F(Statements, An_else_if_is_awaited_before_the_first_if) {
  EXPECT_EQ(
      before("void f() {\n  if (yes) {\n    get();\n  } else if (get()) {@\n    get();\n  }\n}\n"),
      "void f() {\n  act();\n  if (yes) {\n    get();\n  } else if (get()) {\n    get();\n  "
      "}\n}\n");
}

TEST_F(Statements, Headers_of_loops_are_never_cut) {
  EXPECT_EQ(
      before("void f() {\n  for (int i = get();@\n       i < 3; ++i) {\n    get();\n  }\n}\n"),
      "void f() {\n  act();\n  for (int i = get();\n       i < 3; ++i) {\n    get();\n  }\n}\n");
  EXPECT_EQ(after("void f() {\n  while (get() > 0) {@\n    get();\n  }\n}\n"),
            "void f() {\n  while (get() > 0) {\n    act();\n    get();\n  }\n}\n");
}

TEST_F(Statements, What_an_if_decides_is_over_behind_it) {
  EXPECT_EQ(after("int f() {\n  if (get() != 0) return 1;@\n  return get();\n}\n"),
            "int f() {\n  if (get() != 0) return 1;\n  act();\n  return get();\n}\n");
  EXPECT_EQ(after("int f() {\n  if (yes) return get();@\n  return 1;\n}\n"),
            "int f() {\n  if (yes) {\n    Guard g;\n    return get();\n  }\n  return 1;\n}\n");
  EXPECT_EQ(after("int f() {\n  if (get() != 0) {@\n    return 1;\n  }\n  return get();\n}\n"),
            "int f() {\n  if (get() != 0) {\n    return 1;\n  }\n  act();\n  return get();\n}\n");
}

TEST_F(Statements, Behind_a_return_something_acts_when_the_block_is_left) {
  EXPECT_EQ(after("int f() {\n  return get();@\n}\n"),
            "int f() {\n  Guard g;\n  return get();\n}\n");
  EXPECT_EQ(after("int f() {\n  if (yes)\n    return get();@\n  return 1;\n}\n"),
            "int f() {\n  if (yes) {\n    Guard g;\n    return get();\n  }\n  return 1;\n}\n");
  EXPECT_EQ(
      after("int f() {\n  switch (get()) {\n    case 1:\n      return get();@\n    case 2:\n"
            "      return 2;\n  }\n  return 3;\n}\n"),
      "int f() {\n  switch (get()) {\n    case 1:\n      { Guard g; return get(); }\n    case 2:\n"
      "      return 2;\n  }\n  return 3;\n}\n");
  EXPECT_EQ(after("void f() {\n  get();\n}@\n"), "void f() {\n  Guard g;\n  get();\n}\n");
}

TEST_F(Statements, Labels_stay_with_their_statements) {
  const std::string code =
      "void f(int x) {\n  switch (x) {\n    case 1:\n    case 2:\n      get();@\n      break;\n    "
      "default: get();\n  }\n}\n";
  EXPECT_THAT(before(code), HasSubstr("case 2:\n      act();\n      get();\n"));
  EXPECT_THAT(after(code), HasSubstr("case 2:\n      get();\n      act();\n      break;"));
  EXPECT_EQ(before("void f(int x) {\n  switch (x) {\n    default: get();@\n  }\n}\n"),
            "void f(int x) {\n  switch (x) {\n    default: act(); get();\n  }\n}\n");
}

TEST_F(Statements, A_lambda_on_the_line_is_told_by_the_name_of_its_function) {
  const std::string code = "void f() {\n  auto call = [] { get(); get(); };@\n  call();\n}\n";
  EXPECT_THAT(after(code, "f()::{lambda()#1}::operator()"),
              HasSubstr("[] { get(); get(); act(); };"));
  EXPECT_THAT(before(code, "f()::{lambda()#1}::operator()"),
              HasSubstr("[] { act(); get(); get(); };"));
  EXPECT_THAT(before(code, "f"), HasSubstr("{\n  act();\n  auto call"));
  EXPECT_THAT(before("void f() {\n  auto call = [x = get()] {\n    get();@\n    (void)x;\n  };\n  "
                     "call();\n}\n",
                     "f"),
              HasSubstr("{\n    act();\n    get();"));
}

TEST_F(Statements, A_capture_is_part_of_the_statement_around_it) {
  EXPECT_EQ(
      before(
          "void f() {\n  auto call = [\n      x = get()]@ {\n    (void)x;\n  };\n  call();\n}\n"),
      "void f() {\n  act();\n  auto call = [\n      x = get()] {\n    (void)x;\n  };\n  "
      "call();\n}\n");
}

TEST_F(Statements, Macros_are_never_opened) {
  prelude = "#define TWICE(call) do { call; call; } while (false)\n#define RUN(code) code\n";
  EXPECT_EQ(after("void f() {\n  TWICE(get());@\n}\n"),
            "void f() {\n  TWICE(get());\n  act();\n}\n");
  EXPECT_EQ(before("void f() {\n  if (yes)\n    TWICE(get());@\n}\n"),
            "void f() {\n  if (yes) {\n    act();\n    TWICE(get());\n  }\n}\n");
  EXPECT_EQ(after("void f() {\n  RUN([] {\n    get();@\n  }());\n}\n"),
            "void f() {\n  RUN([] {\n    get();\n    act();\n  }());\n}\n");
}

TEST_F(Statements, Initialisers_are_not_cut) {
  const std::string code =
      "struct A {\n  A()\n      : x(get()),@\n        y(get()) {\n    get();\n  }\n  int x, "
      "y;\n};\n";
  EXPECT_THAT(after(code), HasSubstr("y(get()) {\n    act();\n    get();"));
  EXPECT_THAT(before(code), HasSubstr("initialisers"));
  EXPECT_THAT(before("int global = get();@\n"), HasSubstr("no statement"));
  EXPECT_THAT(before("// nothing@\nvoid f();\n"), HasSubstr("no statement"));
}

TEST_F(Statements, Templates_and_members_have_statements_too) {
  EXPECT_EQ(before("template <class T>\nstruct A {\n  void f() {\n    T x = get();@\n    "
                   "(void)x;\n  }\n};\n"),
            "template <class T>\nstruct A {\n  void f() {\n    act();\n    T x = get();\n    "
            "(void)x;\n  }\n};\n");
  EXPECT_EQ(before("template <class T>\nvoid f(T x) { x.call(); }@\n"),
            "template <class T>\nvoid f(T x) {\n  act();\n  x.call();\n}\n");
}

TEST_F(Statements, Line_ends_marks_and_missing_line_feeds_stay_as_they_are) {
  line_end = "\r\n";
  EXPECT_EQ(after("void f() {\r\n  get();@\r\n}\r\n"),
            "void f() {\r\n  get();\r\n  act();\r\n}\r\n");
  byte_order_mark = "\xEF\xBB\xBF";
  EXPECT_EQ(before("void f() {\r\n  get();@\r\n}"), "void f() {\r\n  act();\r\n  get();\r\n}");
  EXPECT_EQ(after("void f() { get(); }@"), "void f() { get(); act(); }");
}

TEST_F(Statements, C_is_a_language_too) {
  name = "code.c";
  prelude = "";
  const std::string head = "int get2(void);\n";
  EXPECT_THAT(before(head + "void f(void) {\n  int x = get2();@\n  (void)x;\n}\n"),
              HasSubstr("  act();\n  int x"));
}

TEST_F(Statements, One_waits_before_a_lock_is_taken) {
  prelude =
      "namespace std { struct mutex {}; template <class M> struct lock_guard { lock_guard(M&); "
      "~lock_guard(); }; }\nstd::mutex m;\n";
  EXPECT_THAT(
      before("void f() {\n  get();\n  {\n    std::lock_guard<std::mutex> lock(m);\n    get();\n    "
             "get();@\n  }\n}\n"),
      HasSubstr(
          "  {\n    act();\n    std::lock_guard<std::mutex> lock(m);\n    get();\n    get();\n"));
  EXPECT_THAT(note, HasSubstr("before the lock of line"));
}

}  // namespace
}  // namespace unflake
