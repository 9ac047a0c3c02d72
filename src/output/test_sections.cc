#include "output/read_outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "output/output_parsers.h"
#include "util/text.h"

namespace unflake {
namespace {

std::optional<double> number_at(std::string_view& text) {
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

Duration seconds(double number) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(number));
}

void add_line(std::string& text, std::string_view line) {
  text.append(line).push_back('\n');
}

// What comes before and after a single test is what its parsers tell a whole run by.
void frame(TestSection& section, std::string_view begin, std::string_view end) {
  section.text.insert(0, begin);
  if (section.has_ended) section.text.append(end);
}

struct GtestMark {
  std::string_view word;
  bool is_failure;
};
constexpr std::array gtest_ends{GtestMark{"[       OK ] ", false}, GtestMark{"[  FAILED  ] ", true},
                                GtestMark{"[  SKIPPED ] ", false}};

// What the test prints may stand in front of GoogleTest's words.
void read_gtest_end(TestSection& section, std::string_view line) {
  for (const GtestMark& mark : gtest_ends) {
    const size_t at = line.rfind(std::string(mark.word) + section.name);
    if (at == line.npos) continue;
    section.has_ended = true;
    section.has_failed = mark.is_failure;
    const size_t open = line.rfind('(');
    std::string_view rest = open == line.npos ? "" : line.substr(open + 1);
    if (const auto ms = number_at(rest)) section.duration = seconds(*ms / 1000);
  }
}

bool is_one_of(const std::vector<std::string>& tests, std::string_view name) {
  return std::ranges::any_of(tests, [&](const auto& test) { return is_called(test, name); });
}

std::vector<TestSection> gtest_sections(std::string_view text,
                                        const std::vector<std::string>& names) {
  constexpr std::string_view begin = "[ RUN      ] ";
  std::vector<TestSection> sections;
  for (const std::string_view line : split_lines(text)) {
    if (line.starts_with(begin) && is_one_of(names, trim(line.substr(begin.size())))) {
      sections.emplace_back().name = trim(line.substr(begin.size()));
    } else if (sections.empty() || sections.back().has_ended) {
      continue;
    }
    add_line(sections.back().text, line);
    read_gtest_end(sections.back(), line);
  }
  for (TestSection& section : sections) {
    const bool passed = !section.has_failed && !contains(section.text, "[  SKIPPED ] ");
    frame(section, "[==========] Running 1 test from 1 test suite.\n",
          fmt::format("[==========] 1 test from 1 test suite ran.\n[  PASSED  ] {} test.\n",
                      passed ? 1 : 0));
  }
  return sections;
}

// What a decorator makes of the checks is said at the very end.
bool is_doctest_verdict(std::string_view line) {
  while (consume_end(line, "!")) {
  }
  return line.ends_with("arking it as failed") || line.ends_with("arking it as not failed");
}

// "0.012 s: name" after everything that a test printed. Catch2 says so of each path through its
// sections, too, and of the sections.
std::vector<TestSection> timed_sections(std::string_view text,
                                        const std::vector<std::string>& names,
                                        bool (*is_over)(std::string_view)) {
  std::vector<TestSection> sections;
  TestSection next;
  for (const std::string_view line : split_lines(text)) {
    std::string_view rest = line;
    const auto took = number_at(rest);
    const bool is_end = took && consume(rest, " s: ") && is_one_of(names, trim(rest));
    if (!is_end) {
      const bool is_verdict = next.text.empty() && !sections.empty() && is_doctest_verdict(line);
      add_line(is_verdict ? sections.back().text : next.text, line);
      continue;
    }
    if (sections.empty() || sections.back().name != trim(rest)) {
      sections.emplace_back().name = trim(rest);
      sections.back().has_ended = true;
    }
    sections.back().text += std::exchange(next.text, "");
    sections.back().duration += seconds(*took);
  }
  if (!is_over(text)) sections.push_back(std::move(next));
  return sections;
}

std::vector<TestSection> catch2_sections(std::string_view text,
                                         const std::vector<std::string>& names) {
  auto sections = timed_sections(text, names, catch2_output.finished);
  const bool all_passed = contains(text, "All tests passed");
  if (all_passed && !sections.empty() && !sections.back().has_ended) sections.pop_back();
  for (TestSection& section : sections) {
    section.has_failed = section.has_ended && !parse_catch2_failures(section.text).empty();
    frame(section, "Filters: \"one\"\n", "test cases: 1\n");
  }
  return sections;
}

bool doctest_has_failed(std::string_view text) {
  if (contains(text, "arking it as failed")) return true;
  return !contains(text, "arking it as not failed") && !parse_doctest_failures(text).empty();
}

std::vector<TestSection> doctest_sections(std::string_view text,
                                          const std::vector<std::string>& names) {
  auto sections = timed_sections(text, names, doctest_output.finished);
  for (TestSection& section : sections) {
    section.has_failed = section.has_ended && doctest_has_failed(section.text);
    frame(section, "[doctest] run with \"--help\" for options\n", "[doctest] Status: told\n");
  }
  return sections;
}

// Reads `Entering test case "name"` and the like.
std::optional<std::string> quoted_behind(std::string_view line, std::string_view words) {
  const size_t at = line.rfind(words);
  if (at == line.npos) return std::nullopt;
  const std::string_view rest = line.substr(at + words.size());
  const size_t timed = rest.find("\"; testing time");
  return std::string(rest.substr(0, timed == rest.npos ? rest.rfind('"') : timed));
}

Duration boost_time(std::string_view line) {
  constexpr std::string_view words = "testing time: ";
  const size_t at = line.rfind(words);
  std::string_view rest = at == line.npos ? "" : line.substr(at + words.size());
  const auto number = number_at(rest);
  if (!number) return Duration::zero();
  return seconds(*number / (rest.starts_with("us") ? 1e6 : rest.starts_with("ms") ? 1e3 : 1));
}

// The report counts expected failures; where it was sent elsewhere, the checks have to do.
bool boost_has_failed(std::string_view text, const TestSection& section) {
  for (const char* words : {"has failed", "was aborted"})
    if (contains(text, fmt::format("Test case \"{}\" {}", section.name, words))) return true;
  if (contains(text, fmt::format("Test case \"{}\" has passed", section.name))) return false;
  return !parse_boost_failures(section.text).empty();
}

std::vector<TestSection> boost_sections(std::string_view text) {
  std::vector<TestSection> sections;
  std::vector<std::string> path;
  bool is_inside = false;
  for (const std::string_view line : split_lines(text)) {
    if (const auto suite = quoted_behind(line, "): Entering test suite \"")) {
      path.push_back(*suite);
    } else if (quoted_behind(line, "): Leaving test suite \"") && !path.empty()) {
      path.pop_back();
    } else if (const auto name = quoted_behind(line, "): Entering test case \"")) {
      sections.emplace_back().name = join(path, "/") + (path.empty() ? "" : "/") + *name;
      is_inside = true;
    } else if (is_inside && quoted_behind(line, "): Leaving test case \"")) {
      sections.back().duration = boost_time(line);
      sections.back().has_ended = true;
      is_inside = false;
    } else if (is_inside && line != "Test is aborted") {
      add_line(sections.back().text, line);
    }
  }
  for (TestSection& section : sections) {
    section.has_failed = section.has_ended && boost_has_failed(text, section);
    frame(section, "", "*** 1 test case was run\n");
  }
  return sections;
}

}  // namespace

bool is_called(const std::string& test, std::string_view name) {
  return trim(test) == name || test.ends_with("/" + std::string(name));
}

std::vector<NumberedSection> sections_in_sequence(std::string_view text) {
  std::vector<NumberedSection> sections;
  for (const std::string_view line : split_lines(text)) {
    std::string_view rest = line;
    const bool is_inside = !sections.empty() && !sections.back().section.has_ended;
    if (consume(rest, "::unflake begin ") && rest.ends_with("::")) {
      const auto number = number_at(rest);
      if (number && *number >= 0) sections.push_back({static_cast<size_t>(*number), {}});
    } else if (is_inside && consume(rest, "::unflake end ")) {
      TestSection& section = sections.back().section;
      const auto number = number_at(rest);
      const auto code = consume(rest, " ") ? number_at(rest) : std::nullopt;
      if (!number || !code) continue;
      section.has_ended = true;
      section.code = static_cast<int>(*code);
    } else if (is_inside) {
      add_line(sections.back().section.text, line);
    }
  }
  return sections;
}

std::vector<TestSection> sections_in(Framework framework, std::string_view text,
                                     const std::vector<std::string>& names) {
  switch (framework) {
    case Framework::gtest:
      return gtest_sections(text, names);
    case Framework::catch2:
      return catch2_sections(text, names);
    case Framework::doctest:
      return doctest_sections(text, names);
    case Framework::boost_test:
      return boost_sections(text);
    case Framework::ctest:
    case Framework::command:
      break;
  }
  return {};
}

}  // namespace unflake
