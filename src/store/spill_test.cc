#include "store/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::HasSubstr;

class SpillTest : public testing::Test {
 protected:
  SpillTest() {
    session_.uuid = "abcdef";
    EXPECT_TRUE(spill_.append(session_, passing_run("t", 1)));
    EXPECT_TRUE(spill_.append(session_, failing_run("t", 2)));
  }

  std::vector<std::string> lines() const {
    std::ifstream file(spill_.path());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  Result<ImportCount> import(const std::vector<std::string>& lines) {
    const std::string path = folder_.file("import.jsonl");
    std::ofstream file(path, std::ios::binary);
    for (const std::string& line : lines) file << line << '\n';
    file.close();
    return import_history(*store_, path);
  }

  TempFolder folder_;
  std::unique_ptr<Store> store_ = *open_store({folder_.file("history.db")});
  SessionRecord session_ = session_of_commit("c0ffee");
  SpillFile spill_{{folder_.file("state")}};
};

TEST_F(SpillTest, Skips_bad_lines_and_names_them) {
  const auto good = lines();
  const std::string deep(100'000, '[');
  const auto imported =
      import({good[0], "", "{}", "[1]", "nonsense", R"({"target": 3})", "\xff\xfe", deep,
              std::string(5'000'000, 'x'), std::string("nul\0nul", 7), good[1], good[2]});
  ASSERT_TRUE(imported) << to_string(imported.error());
  EXPECT_EQ(imported->runs, 2);
  EXPECT_EQ(imported->bad_lines, 9);
  EXPECT_EQ(imported->first_bad.front().line, 2);
  EXPECT_EQ(imported->first_bad.back().line, 10);
  EXPECT_FALSE(imported->first_bad.back().why.empty());
}

TEST_F(SpillTest, Reads_a_last_line_that_was_cut) {
  auto cut = lines();
  cut.back().resize(cut.back().size() / 2);
  const auto imported = import(cut);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->runs, 1);
  EXPECT_EQ(imported->bad_lines, 1);
}

TEST_F(SpillTest, Refuses_numbers_and_digits_that_make_no_sense_line_by_line) {
  const auto imported = import(
      {lines()[0],
       R"({"target":{"hex":"zz"},"name":"n","attempt":1,"started_us":1,"duration_us":1,"outcome":0,)"
       R"("signature":"","plan":"","output":""})",
       R"({"target":"t","name":"n","attempt":1e99,"started_us":-1e300,"duration_us":"x",)"
       R"("outcome":0,"signature":"","plan":"","output":""})"});
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->runs, 0);
  EXPECT_EQ(imported->bad_lines, 2);
}

TEST_F(SpillTest, Refuses_a_file_without_a_session) {
  const auto imported = import({"a", "b"});
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().kind, ErrorKind::usage);
  EXPECT_THAT(imported.error().what, HasSubstr("neither spilled nor exported runs"));
}

TEST_F(SpillTest, Refuses_a_file_that_is_not_there) {
  const auto imported = import_history(*store_, folder_.file("nothing.jsonl"));
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().what, HasSubstr("No such file"));
}

TEST_F(SpillTest, Lists_only_the_first_hundred_bad_lines) {
  std::vector<std::string> many(5'000, "bad");
  many.insert(many.begin(), lines()[0]);
  const auto imported = import(many);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->bad_lines, 5'000);
  EXPECT_EQ(imported->first_bad.size(), 100u);
}

}  // namespace
}  // namespace unflake
