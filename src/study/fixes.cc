#include "study/study.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_files = 50;
constexpr size_t most_lines_between = 6;  // of a loop and the pause in it

bool contains_any(std::string_view text, const auto& words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Every letter and digit between two of which there is none.
bool contains_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end])))
      return true;
  }
  return false;
}

constexpr std::array pausing{"sleep", "usleep", "pause_for", "thread.yield", "sched_yield"};
constexpr std::array waiting{"sleep",   "wait",  "timeout",  "time_out", "timed_out", "deadline",
                             "delay",   "poll",  "expire",   "expiry",   "within",    "retry",
                             "retries", "grace", "patience", "interval", "linger",    "backoff"};
constexpr std::array handing_over{
    "callback",         "promise",    "future",       "condition_variable",
    "notify_one",       "notify_all", "pthread_cond", "latch",
    "std::barrier",     "semaphore",  "countdown",    "waitgroup",
    "wg.wait",          "await ",     "completion",   "waitforsingleobject",
    "manualresetevent", "eventfd",    "qsignalspy",   ".join()",
    "signal_event",     "on_done",    "oncomplete",   "on_complete",
    "->join()",         "<-done",     "cv.wait(",     "cond.wait("};
constexpr std::array polling{
    "eventually",       "poll_until",  "wait_until_true", "waituntil", "wait_for_condition",
    "waitforcondition", "retry_until", "awaitility",      "qtry_",     "assert_eventually"};
constexpr std::array mocking{"mock",    "fake",       "stub",        "expect_call",
                             "on_call", "testdouble", "test_double", "simulated"};
constexpr std::array disabling{"disabled_",        "gtest_skip", "@ignore",   "@disabled",
                               "pytest.mark.skip", "t.skip(",    "#[ignore]", "skip()"};

struct Change {
  std::vector<std::string> removed, added;  // in lower case, trimmed
};

bool is_code_line(std::string_view line) {
  return !line.empty() && !line.starts_with("//") && !line.starts_with("/*") &&
         !line.starts_with("*") && !line.starts_with("# ");
}

// The hunks of files that hold code, and for each what was removed and added.
std::vector<Change> changes_in(std::string_view diff) {
  std::vector<Change> changes;
  bool in_code = false, in_hunk = false;
  for (const std::string_view line : split_lines(diff)) {
    if (line.starts_with("diff ")) in_hunk = false;
    if (!in_hunk && (line.starts_with("+++ ") || line.starts_with("--- "))) {
      const std::string_view path = line.substr(4);
      if (path != "/dev/null") in_code = is_code_path(path);
    }
    if (line.starts_with("@@")) {
      in_hunk = true;
      changes.emplace_back();
    } else if (in_hunk && in_code && !line.empty()) {
      const std::string text = lower_case(trim(line.substr(1)));
      if (!is_code_line(text)) continue;
      if (line[0] == '+') changes.back().added.push_back(text);
      if (line[0] == '-') changes.back().removed.push_back(text);
    }
  }
  return changes;
}

struct TimeUnit {
  std::string_view name;
  double milliseconds;
};

constexpr std::array time_units{TimeUnit{"nanoseconds", 1e-6},
                                TimeUnit{"microseconds", 1e-3},
                                TimeUnit{"milliseconds", 1},
                                TimeUnit{"seconds", 1e3},
                                TimeUnit{"minutes", 60e3},
                                TimeUnit{"hours", 3600e3},
                                TimeUnit{"nanosecond", 1e-6},
                                TimeUnit{"microsecond", 1e-3},
                                TimeUnit{"millisecond", 1},
                                TimeUnit{"second", 1e3},
                                TimeUnit{"minute", 60e3},
                                TimeUnit{"hour", 3600e3},
                                TimeUnit{"ns", 1e-6},
                                TimeUnit{"us", 1e-3},
                                TimeUnit{"ms", 1},
                                TimeUnit{"s", 1e3},
                                TimeUnit{"min", 60e3},
                                TimeUnit{"h", 3600e3}};

const TimeUnit* unit_named(std::string_view word) {
  const auto found = std::ranges::find(time_units, word, &TimeUnit::name);
  return found == time_units.end() ? nullptr : &*found;
}

// A line with its numbers, and the units of time next to them, removed.
struct MaskedLine {
  std::string text;
  std::vector<double> numbers;
};

class Masker {
 public:
  explicit Masker(std::string_view line) : rest_(line) {}

  MaskedLine operator()() {
    while (!rest_.empty()) {
      if (is_word(rest_[0]))
        word();
      else
        take(1);
    }
    if (masked_.numbers.size() == 1) masked_.numbers[0] *= factor_;
    return masked_;
  }

 private:
  void take(size_t size) {
    masked_.text += rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  void word() {
    size_t size = 0;
    while (size < rest_.size() && is_word(rest_[size])) ++size;
    const std::string_view name = rest_.substr(0, size);
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) return number();
    const TimeUnit* unit = unit_named(name);
    if (!unit) return take(size);
    factor_ = unit->milliseconds;
    masked_.text += '@';
    rest_.remove_prefix(size);
  }

  // "1'500ms", "0.5", "10s", "100L"; digits may be grouped.
  void number() {
    std::string digits;
    size_t size = 0;
    const auto is_digit = [&](size_t i) {
      return i < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[i])) != 0;
    };
    for (; size < rest_.size(); ++size) {
      const char c = rest_[size];
      const bool grouped = (c == '\'' || c == '_') && is_digit(size + 1);
      if (is_digit(size) || (c == '.' && is_digit(size + 1)))
        digits += c;
      else if (!grouped)
        break;
    }
    double value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    rest_.remove_prefix(size);
    size_t suffix = 0;
    while (suffix < rest_.size() && is_word(rest_[suffix])) ++suffix;
    const TimeUnit* unit = unit_named(rest_.substr(0, suffix));
    masked_.numbers.push_back(unit ? value * unit->milliseconds : value);
    masked_.text += unit ? "#@" : "#";
    rest_.remove_prefix(suffix);
  }

  std::string_view rest_;
  MaskedLine masked_;
  double factor_ = 1;
};

bool is_longer(const MaskedLine& before, const MaskedLine& after) {
  if (before.text != after.text || before.numbers.size() != after.numbers.size()) return false;
  for (size_t i = 0; i < before.numbers.size(); ++i)
    if (after.numbers[i] > before.numbers[i]) return true;
  return false;
}

// A pause where there was none is a wait that became longer, unless it is one within a loop.
bool lengthens_a_wait(const Change& change) {
  for (const std::string& line : change.added) {
    if (!contains_any(line, waiting)) continue;
    const MaskedLine after = Masker(line)();
    for (const std::string& old : change.removed)
      if (is_longer(Masker(old)(), after)) return true;
  }
  return false;
}

size_t count_lines(const std::vector<std::string>& lines, const auto& words) {
  return static_cast<size_t>(std::ranges::count_if(
      lines, [&](const std::string& line) { return contains_any(line, words); }));
}

bool is_loop(std::string_view line) {
  return contains_word(line, "while") || contains_word(line, "for") || contains_word(line, "do") ||
         contains_word(line, "until") || contains_word(line, "loop");
}

bool has_polling_loop(const std::vector<std::string>& lines) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!is_loop(lines[i])) continue;
    const size_t end = std::min(lines.size(), i + 1 + most_lines_between);
    for (size_t j = i; j < end; ++j)
      if (contains_any(lines[j], pausing)) return true;
  }
  return false;
}

bool adds_polling(const Change& change) {
  if (count_lines(change.added, polling) > count_lines(change.removed, polling)) return true;
  return has_polling_loop(change.added) && !has_polling_loop(change.removed);
}

bool adds_pause(const Change& change) {
  return count_lines(change.added, pausing) > count_lines(change.removed, pausing) &&
         !has_polling_loop(change.added);
}

bool only_removes(const std::vector<Change>& changes) {
  const auto adds = [](const Change& change) { return !change.added.empty(); };
  const auto removes = [](const Change& change) { return !change.removed.empty(); };
  return std::ranges::none_of(changes, adds) && std::ranges::any_of(changes, removes);
}

bool disables(const Change& change) {
  return count_lines(change.added, disabling) > count_lines(change.removed, disabling);
}

}  // namespace

std::vector<FixKind> fix_kinds(const CommitChange& change) {
  if (!change.whole || change.paths.size() > most_files) return {FixKind::hard_to_say};
  const std::vector<Change> changes = changes_in(change.diff);
  const auto any = [&](const auto& is) { return std::ranges::any_of(changes, is); };
  const auto adds_more = [](const auto& words) {
    return [&words](const Change& one) {
      return count_lines(one.added, words) > count_lines(one.removed, words);
    };
  };
  std::vector<FixKind> kinds;
  if (any(lengthens_a_wait) || any(adds_pause)) kinds.push_back(FixKind::longer_wait);
  if (any(adds_more(handing_over))) kinds.push_back(FixKind::callback);
  if (any(adds_polling)) kinds.push_back(FixKind::polling);
  if (only_removes(changes) || any(disables)) kinds.push_back(FixKind::removal);
  if (any(adds_more(mocking))) kinds.push_back(FixKind::mocking);
  if (kinds.empty()) kinds.push_back(FixKind::hard_to_say);
  return kinds;
}

namespace {

std::string_view name_in(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string ending_of(std::string_view path) {
  const std::string_view name = name_in(path);
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? "" : lower_case(name.substr(dot + 1));
}

bool is_for_people(std::string_view path) {
  constexpr std::array endings{"md", "rst", "adoc", "txt"};
  const std::string ending = ending_of(path);
  if (lower_case(name_in(path)) == "cmakelists.txt") return false;
  const std::string name = lower_case(name_in(path));
  return std::ranges::find(endings, ending) != endings.end() || name == "changelog" ||
         name == "authors" || name == "news";
}

bool is_test_folder(std::string_view folder) {
  constexpr std::array names{
      "test", "tests", "testing",   "unittest",  "unittests",  "unit_test",        "unit_tests",
      "spec", "specs", "__tests__", "testsuite", "test_suite", "integration_tests"};
  const std::string low = lower_case(folder);
  return std::ranges::find(names, low) != names.end() || low.ends_with("_test") ||
         low.ends_with("_tests") || low.ends_with("-tests") || low.ends_with(".tests");
}

bool is_test_name(std::string_view stem) {
  const std::string low = lower_case(stem);
  for (const std::string_view end :
       {"_test", "_tests", "-test", ".test", "_unittest", "_spec", ".spec"})
    if (low.ends_with(end)) return true;
  return low.starts_with("test_") || low.starts_with("tst_") || stem.ends_with("Test") ||
         stem.ends_with("Tests") || low == "test" || low == "tests";
}

bool is_same_file(std::string_view path, std::string_view known) {
  if (path == known) return true;
  return known.size() > path.size() && known.ends_with(path) &&
         known[known.size() - path.size() - 1] == '/';
}

}  // namespace

bool is_code_path(std::string_view path) {
  constexpr std::array endings{"c",     "cc",    "cpp", "cxx", "c++", "h",    "hh",  "hpp", "hxx",
                               "inl",   "ipp",   "tpp", "m",   "mm",  "rs",   "go",  "py",  "java",
                               "kt",    "kts",   "cs",  "fs",  "js",  "jsx",  "ts",  "tsx", "mjs",
                               "swift", "scala", "rb",  "php", "pl",  "pm",   "sh",  "lua", "ex",
                               "exs",   "erl",   "hs",  "ml",  "clj", "dart", "zig", "d",   "cu"};
  return std::ranges::find(endings, ending_of(path)) != endings.end();
}

bool is_test_path(std::string_view path) {
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    if (is_test_folder(path.substr(0, slash))) return true;
    path.remove_prefix(slash + 1);
  }
  return is_test_name(path.substr(0, path.rfind('.')));
}

FixPlace fix_place(const std::vector<std::string>& paths,
                   const std::vector<std::string>& test_files) {
  bool test = false, source = false, other = false;
  for (const std::string& path : paths) {
    const bool known = std::ranges::any_of(
        test_files, [&](const std::string& file) { return is_same_file(path, file); });
    if (known || (is_code_path(path) && is_test_path(path)))
      test = true;
    else if (is_code_path(path))
      source = true;
    else if (!is_for_people(path))
      other = true;
  }
  if (other || (!test && !source)) return FixPlace::other;
  if (test && source) return FixPlace::both;
  return test ? FixPlace::test : FixPlace::source;
}

}  // namespace unflake
