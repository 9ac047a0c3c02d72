// What zoo/timed/*.toml say must be true of the sources beside them.
#include "timed_truth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "balance_scores.h"
#include "support/temp_folder.h"

namespace unflake::eval {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

const std::string timed = UNFLAKE_ZOO_SOURCES "/timed";

const std::vector<TimedTruth>& truths() {
  static const std::vector<TimedTruth> all = [] {
    auto read = read_timed_truths(timed, {});
    return read ? std::move(*read) : std::vector<TimedTruth>();
  }();
  return all;
}

// FILE:LINE of all that ends in the marker.
std::multiset<std::string> marked_lines() {
  std::multiset<std::string> marked;
  for (const auto& entry : fs::recursive_directory_iterator(timed)) {
    if (entry.path().extension() != ".cc") continue;
    std::ifstream source(entry.path());
    int number = 1;
    for (std::string line; std::getline(source, line); ++number)
      if (line.ends_with("// value"))
        marked.insert(entry.path().filename().string() + ":" + std::to_string(number));
  }
  return marked;
}

template <class Holds>
long how_many_values(Holds holds) {
  long count = 0;
  for (const TimedTruth& truth : truths()) count += std::ranges::count_if(truth.values, holds);
  return count;
}

TEST(TimedTruths, Name_the_lines_that_carry_the_marker_and_no_other) {
  std::multiset<std::string> named;
  for (const TimedTruth& truth : truths())
    for (const TimedValue& value : truth.values) named.insert(value.line);
  EXPECT_FALSE(named.empty());
  EXPECT_EQ(named, marked_lines());
}

TEST(TimedTruths, Belong_to_a_program_each) {
  for (const TimedTruth& truth : truths()) {
    EXPECT_TRUE(fs::exists(timed + "/" + truth.program + ".cc")) << truth.program;
    EXPECT_FALSE(truth.test.empty()) << truth.program;
    EXPECT_FALSE(truth.values.empty()) << truth.program;
  }
}

TEST(TimedTruths, Have_known_words_only) {
  const std::set<std::string> frameworks{"gtest", "catch2", "doctest", "boost", "plain"};
  const std::set<std::string> kinds{"wait", "timeout", "mixed", "not_seen"};
  const std::set<std::string> spreads{"", "fixed", "uniform", "tail", "cpu"};
  const std::set<std::string> expected{"shorten", "raise", "keep", "unneeded", "not changed"};
  for (const TimedTruth& truth : truths()) {
    EXPECT_TRUE(frameworks.contains(truth.framework)) << truth.program;
    for (const TimedValue& value : truth.values) {
      EXPECT_TRUE(kinds.contains(value.kind)) << value.line;
      EXPECT_TRUE(spreads.contains(value.spread)) << value.line;
      EXPECT_TRUE(expected.contains(value.expect)) << value.line;
    }
  }
}

TEST(TimedTruths, Have_a_threshold_where_a_value_is_to_change_and_only_there) {
  for (const TimedTruth& truth : truths())
    for (const TimedValue& value : truth.values) {
      SCOPED_TRACE(value.line);
      const bool changes = value.expect == "shorten" || value.expect == "raise";
      EXPECT_EQ(changes, value.needs || truth.together);
      if (!value.needs) continue;
      EXPECT_EQ(value.expect == "raise", *value.needs > value.now);
      EXPECT_GE(*value.needs, 15ms);
      EXPECT_LE(*value.needs, 120ms);
    }
}

TEST(TimedZoo, Has_enough_thresholds_and_some_of_every_kind) {
  EXPECT_GE(how_many_values([](const TimedValue& value) { return value.needs.has_value(); }), 20);
  for (const std::string spread : {"fixed", "uniform", "tail", "cpu"})
    EXPECT_GE(how_many_values([&](const TimedValue& value) { return value.spread == spread; }), 1);
  for (const std::string expect : {"raise", "keep", "unneeded", "not changed"})
    EXPECT_GE(how_many_values([&](const TimedValue& value) { return value.expect == expect; }), 1);
}

TEST(TimedTruth, Is_read_as_it_stands_in_the_file) {
  const TempFolder folder;
  std::ofstream(folder.file("nap.toml")) << R"(framework = "gtest"
test = "A.B"
plain_failure_rate = 0.1
[[value]]
line = "nap.cc:7"
call = "usleep"
kind = "wait"
now = "200ms"
needs = "50ms"
spread = "fixed"
expect = "shorten"
)";
  const auto read = read_timed_truths(folder.path(), {"nap"});
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->size(), 1u);
  const TimedTruth& truth = read->front();
  EXPECT_EQ(truth.values.at(0).now, 200ms);
  EXPECT_EQ(truth.values.at(0).needs, 50ms);
  EXPECT_TRUE(truth.is_flaky_anyway());
  EXPECT_EQ(lines_to_lower(truth), (std::vector<std::vector<std::string>>{{"nap.cc:7"}}));
}

TEST(TimedTruth, With_a_value_that_is_no_time_is_an_error) {
  const TempFolder folder;
  std::ofstream(folder.file("nap.toml")) << "[[value]]\nnow = \"soon\"\n";
  EXPECT_FALSE(read_timed_truths(folder.path(), {}).has_value());
}

}  // namespace
}  // namespace unflake::eval
