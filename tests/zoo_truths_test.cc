// The zoo is the evaluation's ground truth, so what its *.toml say must be true of its *.cc.
#include <gtest/gtest.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace unflake {
namespace {

namespace fs = std::filesystem;

const fs::path zoo = UNFLAKE_ZOO_SOURCES;

struct Program {
  fs::path folder;
  std::string name;
  toml::table truth;

  std::string text(const char* key) const { return truth[key].value_or(std::string()); }
  bool late() const { return truth["lateness_can_cause_it"].value_or(false); }
  double rate() const { return truth["plain_failure_rate"].value_or(-1.0); }
  int number(const char* key) const { return truth[key].value_or(-1); }
  bool sound() const { return text("expect") == "nothing"; }
};

using Programs = std::vector<Program>;

std::set<std::string> names_with(const fs::path& folder, const std::set<std::string>& extensions) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (extensions.count(entry.path().extension()) != 0) names.insert(entry.path().stem());
  return names;
}

Programs programs_in(const fs::path& folder) {
  Programs programs;
  for (const std::string& name : names_with(folder, {".toml"}))
    programs.push_back({folder, name, toml::parse_file((folder / (name + ".toml")).string())});
  return programs;
}

const Programs& programs() {
  static const Programs all = programs_in(zoo);
  return all;
}

const Programs& interleavings() {
  static const Programs all = programs_in(zoo / "interleavings");
  return all;
}

const Programs& layers() {
  static const Programs all = programs_in(zoo / "layers");
  return all;
}

const Programs& unsteady() {
  static const Programs all = programs_in(zoo / "unsteady");
  return all;
}

template <class Holds>
long how_many(Holds holds, const Programs& all = programs()) {
  return std::count_if(all.begin(), all.end(), holds);
}

// The words of a line's last comment, if it is one of markers: "// barrier, fails here".
std::vector<std::string> markers_of(const std::string& line) {
  static const std::set<std::string> known{"critical",       "barrier",       "step",
                                           "other critical", "other barrier", "fails here"};
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

// The program's own source, or the header in which several programs have their code.
fs::path source_of(const Program& program) {
  const std::string critical = program.text("critical");
  const std::string header = critical.substr(0, critical.find(".h:")) + ".h";
  if (fs::exists(program.folder / "support" / header)) return program.folder / "support" / header;
  const fs::path source = program.folder / (program.name + ".c");
  return fs::exists(source) ? source : program.folder / (program.name + ".cc");
}

// Where each marker stands, as the truth would say it: marker -> NAME.cc:LINE.
using Markers = std::multimap<std::string, std::string>;
Markers markers_in(const fs::path& file) {
  Markers found;
  std::ifstream source(file);
  int number = 1;
  for (std::string line; std::getline(source, line); ++number)
    for (const std::string& marker : markers_of(line))
      found.emplace(marker, file.filename().string() + ":" + std::to_string(number));
  return found;
}

void expect_marker(const Program& program, const std::string& place, const std::string& marker,
                   const std::set<std::string>& words) {
  SCOPED_TRACE(program.name + ".toml: " + marker);
  const Markers found = markers_in(source_of(program));
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

void expect_fields(const Program& program, std::set<std::string> wanted) {
  wanted.merge(std::set<std::string>{"framework", "test", "category", "cause", "failure",
                                     "critical", "barrier", "expect", "plain_runs",
                                     "plain_failure_rate"});
  std::set<std::string> fields;
  for (const auto& [key, value] : program.truth) fields.emplace(key.str());
  fields.erase("other_way");
  EXPECT_EQ(fields, wanted) << program.name;
}

void expect_known_words(const Program& program, std::set<std::string> categories) {
  categories.merge(
      std::set<std::string>{"ordering", "lost wake-up", "deadlock", "teardown race", "none"});
  expect_one_of(program, "category", categories);
  expect_one_of(program, "framework", {"gtest", "catch2", "doctest", "boost", "plain"});
  expect_one_of(program, "expect", {"reproduced", "broken", "nothing"});
  EXPECT_FALSE(program.text("test").empty()) << program.name;
  EXPECT_FALSE(program.text("cause").empty()) << program.name;
}

const std::set<std::string> categories_of_lateness{"async wait", "exact timing", "starvation",
                                                   "resource", "process hand-over"};

void expect_marked_lines(const Program& program) {
  expect_marker(program, program.text("failure"), "fails here",
                {"timeout", "signal", "exception", "exit status", "none"});
  expect_marker(program, program.text("critical"), "critical", {"exact timing", "none"});
  expect_marker(program, program.text("barrier"), "barrier", {"exact timing", "none"});
  for (const std::string key : {"critical", "barrier"})
    expect_marker(program, program.truth["other_way"][key].value_or(std::string("none")),
                  "other " + key, {"none"});
}

TEST(ZooTruths, Every_program_has_one_and_every_one_has_a_program) {
  for (const fs::path& folder : {zoo, zoo / "interleavings", zoo / "layers", zoo / "unsteady"})
    EXPECT_EQ(names_with(folder, {".c", ".cc"}), names_with(folder, {".toml"})) << folder;
}

TEST(ZooTruths, Have_all_fields_and_no_other) {
  for (const Programs& all : {programs(), layers(), unsteady()})
    for (const Program& program : all)
      expect_fields(program, {"lateness_can_cause_it", "delays_needed"});
}

TEST(ZooTruths, Have_known_words_only) {
  for (const Programs& all : {programs(), layers(), unsteady()})
    for (const Program& program : all) expect_known_words(program, categories_of_lateness);
}

TEST(ZooTruths, Name_the_lines_that_carry_the_markers) {
  for (const Programs& all : {programs(), interleavings(), layers(), unsteady()})
    for (const Program& program : all) expect_marked_lines(program);
}

void expect_lateness(const Program& program) {
  const int delays = program.number("delays_needed");
  EXPECT_EQ(program.late(), program.text("expect") == "reproduced") << program.name;
  EXPECT_EQ(program.late(), program.text("category") != "none") << program.name;
  EXPECT_TRUE(program.late() ? delays == 1 || delays == 2 : delays == 0) << program.name;
  EXPECT_EQ(program.text("failure") == "none", program.sound()) << program.name;
}

TEST(ZooTruths, Expect_a_reproduction_where_lateness_can_cause_the_failure_and_only_there) {
  for (const Programs& all : {programs(), layers()})
    for (const Program& program : all) expect_lateness(program);
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

// The lines of a program's [[order]]s.
std::set<std::string> ordered_lines(const Program& program) {
  std::set<std::string> lines;
  const toml::array* orders = program.truth["order"].as_array();
  for (std::size_t i = 0; orders != nullptr && i < orders->size(); ++i)
    for (const char* key : {"first", "then"})
      lines.insert((*orders->get(i)->as_table())[key].value_or(std::string()));
  return lines;
}

TEST(InterleavingTruths, Have_all_fields_and_no_other) {
  for (const Program& program : interleavings()) {
    std::set<std::string> wanted{"threads", "depth", "switch_points"};
    if (!program.sound()) wanted.insert("order");
    expect_fields(program, wanted);
  }
}

TEST(InterleavingTruths, Have_known_words_only) {
  for (const Program& program : interleavings()) {
    expect_known_words(program, {"atomicity"});
    expect_one_of(program, "switch_points", {"calls", "memory", "none"});
  }
}

TEST(InterleavingTruths, Order_the_marked_lines_and_no_other) {
  for (const Program& program : interleavings()) {
    std::set<std::string> marked;
    for (const auto& [marker, place] : markers_in(source_of(program)))
      if (marker != "fails here") marked.insert(place);
    EXPECT_EQ(ordered_lines(program), marked) << program.name;
  }
}

TEST(InterleavingTruths, Are_as_deep_as_there_are_orders_at_least) {
  for (const Program& program : interleavings()) {
    SCOPED_TRACE(program.name);
    const toml::array* orders = program.truth["order"].as_array();
    EXPECT_GE(program.number("depth"), orders == nullptr ? 0 : static_cast<int>(orders->size()));
    EXPECT_EQ(program.number("depth") == 0, program.sound());
    EXPECT_EQ(program.text("switch_points") == "none", program.sound());
    EXPECT_EQ(program.text("failure") == "none", program.sound());
    EXPECT_EQ(program.text("category") == "none", program.sound());
    EXPECT_GE(program.number("threads"), 2);
  }
}

TEST(InterleavingTruths, Give_a_failure_rate_that_was_measured) {
  for (const Program& program : interleavings()) {
    SCOPED_TRACE(program.name);
    EXPECT_GE(program.number("plain_runs"), 300);
    EXPECT_GE(program.rate(), 0.0);
    EXPECT_LE(program.rate(), program.sound() ? 0.0 : 0.05);
  }
}

TEST(Interleavings, Are_enough_and_mostly_never_seen_in_plain_runs) {
  const auto flawed = [](const Program& program) { return !program.sound(); };
  const auto rare = [&](const Program& program) {
    return flawed(program) && program.rate() < 0.01;
  };
  const long all_flawed = how_many(flawed, interleavings());
  EXPECT_GE(all_flawed, 24);
  EXPECT_GE(how_many(rare, interleavings()) * 4, all_flawed * 3);
  EXPECT_GE(how_many([](const Program& program) { return program.sound(); }, interleavings()), 6);
}

TEST(Interleavings, Need_calls_alone_or_memory_accesses_too) {
  for (const std::string points : {"calls", "memory"}) {
    const auto needs = [&](const Program& program) {
      return program.text("switch_points") == points;
    };
    EXPECT_GE(how_many(needs, interleavings()), 10) << points;
  }
}

std::string percent(double rate) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * rate);
  return text.data();
}

TEST(ZooTruths, Are_what_the_readme_says) {
  std::ifstream file(zoo / "README.md");
  const std::string readme(std::istreambuf_iterator<char>(file), {});
  const auto expect_row = [&](const std::string& row) {
    EXPECT_NE(readme.find("\n| `" + row + " |"), std::string::npos) << row;
  };
  for (const Program& program : interleavings())
    expect_row(program.name + "` | " + std::to_string(program.number("threads")) + " | " +
               std::to_string(program.number("depth")) + " | " + percent(program.rate()) + " | " +
               program.text("switch_points"));
  for (const Programs& all : {layers(), unsteady()})
    for (const Program& program : all) expect_row(program.name + "` | " + percent(program.rate()));
}

TEST(Layers, Are_enough_and_hardly_ever_fail_by_themselves) {
  for (const Program& program : layers()) {
    SCOPED_TRACE(program.name);
    EXPECT_GE(program.number("plain_runs"), 200);
    EXPECT_GE(program.rate(), 0.0);
    EXPECT_LE(program.rate(), program.sound() ? 0.0 : 0.05);
  }
  EXPECT_GE(how_many([](const Program& program) { return program.late(); }, layers()), 12);
  EXPECT_GE(how_many([](const Program& program) { return program.sound(); }, layers()), 3);
}

TEST(Layers, Have_their_points_in_the_code_that_uses_them) {
  for (const Program& program : layers())
    EXPECT_EQ(source_of(program).parent_path(), program.folder) << program.name;
}

TEST(Unsteady, Fail_by_themselves_neither_rarely_nor_mostly) {
  EXPECT_GE(unsteady().size(), 10u);
  for (const Program& program : unsteady()) {
    SCOPED_TRACE(program.name);
    EXPECT_GE(program.number("plain_runs"), 200);
    EXPECT_GE(program.rate(), 0.05);
    EXPECT_LE(program.rate(), 0.4);
    EXPECT_TRUE(program.late());
    EXPECT_EQ(program.number("delays_needed"), 1);
    EXPECT_EQ(program.text("expect"), "reproduced");
  }
}

}  // namespace
}  // namespace unflake
