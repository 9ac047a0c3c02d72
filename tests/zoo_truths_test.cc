// The zoo is the evaluation's ground truth, so what its *.toml say must be true of its *.cc.
#include <gtest/gtest.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace unflake {
namespace {

namespace fs = std::filesystem;

const fs::path folder = UNFLAKE_ZOO_SOURCES;

struct Program {
  std::string name;
  toml::table truth;

  std::string text(const char* key) const { return truth[key].value_or(std::string()); }
  bool late() const { return truth["lateness_can_cause_it"].value_or(false); }
  double rate() const { return truth["plain_failure_rate"].value_or(-1.0); }
};

std::set<std::string> names_with(const std::string& extension) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == extension) names.insert(entry.path().stem());
  return names;
}

std::vector<Program> all_programs() {
  std::vector<Program> programs;
  for (const std::string& name : names_with(".toml"))
    programs.push_back({name, toml::parse_file((folder / (name + ".toml")).string())});
  return programs;
}

const std::vector<Program>& programs() {
  static const std::vector<Program> all = all_programs();
  return all;
}

template <class Holds>
long how_many(Holds holds) {
  return std::count_if(programs().begin(), programs().end(), holds);
}

// The words of a line's last comment, if it is one of markers: "// barrier, fails here".
std::vector<std::string> markers_of(const std::string& line) {
  static const std::set<std::string> known{"critical", "barrier", "fails here"};
  const std::size_t comment = line.rfind("// ");
  if (comment == std::string::npos) return {};
  std::vector<std::string> markers;
  for (std::size_t begin = comment + 3; begin < line.size();) {
    const std::size_t end = std::min(line.find(", ", begin), line.size());
    markers.push_back(line.substr(begin, end - begin));
    if (known.count(markers.back()) == 0) return {};
    begin = end + 2;
  }
  return markers;
}

// Where each marker stands, as the truth would say it: marker -> NAME.cc:LINE.
std::multimap<std::string, std::string> markers_in(const std::string& name) {
  std::multimap<std::string, std::string> found;
  std::ifstream source(folder / (name + ".cc"));
  int number = 1;
  for (std::string line; std::getline(source, line); ++number)
    for (const std::string& marker : markers_of(line))
      found.emplace(marker, name + ".cc:" + std::to_string(number));
  return found;
}

void expect_marker(const Program& program, const char* key, const std::string& marker,
                   const std::set<std::string>& words) {
  SCOPED_TRACE(program.name + ".toml: " + key);
  const auto found = markers_in(program.name);
  const std::string place = program.text(key);
  if (words.count(place) != 0) {
    EXPECT_EQ(found.count(marker), 0u) << "the source has a marker, but the truth names no line";
  } else {
    ASSERT_EQ(found.count(marker), 1u) << "the source needs one line that ends in // " << marker;
    EXPECT_EQ(place, found.find(marker)->second);
  }
}

void expect_one_of(const Program& program, const char* key, const std::set<std::string>& known) {
  EXPECT_TRUE(known.count(program.text(key)) != 0)
      << program.name << ".toml: " << key << " = \"" << program.text(key) << "\"";
}

TEST(ZooTruths, Every_program_has_one_and_every_one_has_a_program) {
  EXPECT_EQ(names_with(".cc"), names_with(".toml"));
}

TEST(ZooTruths, Have_all_fields_and_no_other) {
  const std::set<std::string> wanted{
      "framework", "test",          "category",   "cause",
      "failure",   "critical",      "barrier",    "lateness_can_cause_it",
      "expect",    "delays_needed", "plain_runs", "plain_failure_rate"};
  for (const Program& program : programs()) {
    std::set<std::string> fields;
    for (const auto& [key, value] : program.truth) fields.emplace(key.str());
    EXPECT_EQ(fields, wanted) << program.name;
  }
}

TEST(ZooTruths, Have_known_words_only) {
  for (const Program& program : programs()) {
    expect_one_of(program, "framework", {"gtest", "catch2", "doctest", "boost", "plain"});
    expect_one_of(program, "category",
                  {"async wait", "ordering", "lost wake-up", "exact timing", "teardown race",
                   "deadlock", "starvation", "resource", "process hand-over", "none"});
    expect_one_of(program, "expect", {"reproduced", "broken", "nothing"});
    EXPECT_FALSE(program.text("test").empty()) << program.name;
    EXPECT_FALSE(program.text("cause").empty()) << program.name;
  }
}

TEST(ZooTruths, Name_the_lines_that_carry_the_markers) {
  const std::set<std::string> without_line{"timeout", "signal", "exception", "exit status", "none"};
  for (const Program& program : programs()) {
    expect_marker(program, "failure", "fails here", without_line);
    expect_marker(program, "critical", "critical", {"exact timing", "none"});
    expect_marker(program, "barrier", "barrier", {"exact timing", "none"});
  }
}

TEST(ZooTruths, Expect_a_reproduction_where_lateness_can_cause_the_failure_and_only_there) {
  for (const Program& program : programs()) {
    const int delays = program.truth["delays_needed"].value_or(-1);
    EXPECT_EQ(program.late(), program.text("expect") == "reproduced") << program.name;
    EXPECT_EQ(program.late(), program.text("category") != "none") << program.name;
    EXPECT_TRUE(program.late() ? delays == 1 || delays == 2 : delays == 0) << program.name;
    EXPECT_EQ(program.text("failure") == "none", program.text("expect") == "nothing")
        << program.name;
  }
}

TEST(ZooTruths, Give_a_failure_rate_that_was_measured) {
  const std::map<std::string, double> certain{{"broken", 1.0}, {"nothing", 0.0}};
  for (const Program& program : programs()) {
    SCOPED_TRACE(program.name);
    EXPECT_GE(program.truth["plain_runs"].value_or(0), 200);
    const auto rate = certain.find(program.text("expect"));
    EXPECT_EQ(program.rate(), rate == certain.end() ? program.rate() : rate->second);
  }
}

TEST(Zoo, Has_programs_of_every_framework) {
  for (const std::string framework : {"gtest", "catch2", "doctest", "boost", "plain"}) {
    const auto is_of_it = [&](const Program& program) {
      return program.text("framework") == framework;
    };
    EXPECT_GE(how_many(is_of_it), 5) << framework;
  }
}

TEST(Zoo, Has_enough_that_can_and_that_must_not_be_reproduced) {
  EXPECT_GE(how_many([](const Program& program) { return program.late(); }), 30);
  EXPECT_GE(how_many([](const Program& program) { return !program.late(); }), 8);
}

TEST(Zoo, Has_programs_that_fail_often_without_help_and_some_that_fail_mostly) {
  const auto between = [](double low, double high) {
    return how_many([=](const Program& program) {
      return program.late() && program.rate() >= low && program.rate() <= high;
    });
  };
  EXPECT_GE(between(0.2, 0.9), 3);
  EXPECT_GE(between(0.6, 0.9), 1);
  EXPECT_EQ(between(0.011, 0.2), 0) << "rarely or often, not in between";
}

}  // namespace
}  // namespace unflake
