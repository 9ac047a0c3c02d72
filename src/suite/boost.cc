#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>

#include "suite/adapter.h"
#include "suite/frameworks.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr std::string_view label_start = ",label=\"", label_end = "\"];";

// "file(12)" -> the two; the compilers that Boost.Test knows agree on this form.
bool read_place(std::string_view text, ListedCase& listed) {
  const size_t open = text.rfind('(');
  if (open == std::string_view::npos || !text.ends_with(')')) return false;
  const std::string_view number = text.substr(open + 1, text.size() - open - 2);
  const auto [end, failed] =
      std::from_chars(number.data(), number.data() + number.size(), listed.line);
  if (failed != std::errc() || end != number.data() + number.size()) return false;
  listed.file = text.substr(0, open);
  return true;
}

std::vector<std::string> labels_in(std::string_view field) {
  std::vector<std::string> labels;
  for (const std::string& word : split(field, ' '))
    if (word.size() > 1 && word[0] == '@') labels.push_back(word.substr(1));
  return labels;
}

// "name|file(line)|timeout=..|expected failures=..|labels: @a @b"; a name may hold bars too.
ListedCase read_label(std::string_view label) {
  ListedCase listed;
  const std::vector<std::string> fields = split(label, '|');
  size_t place = 1;
  while (place < fields.size() && !read_place(fields[place], listed)) ++place;
  const auto bar = fields.begin() + static_cast<std::ptrdiff_t>(std::min(place, fields.size()));
  listed.name = join({fields.begin(), bar}, "|");
  for (auto field = bar; field != fields.end(); ++field)
    if (field->starts_with("labels:")) listed.labels = labels_in(*field);
  return listed;
}

// Reads the statements of the graph. A node is a suite when a brace opens after it; what was a
// node and has no brace is a case.
class GraphReader {
 public:
  void read(std::string_view line) {
    if (line == "{") {
      if (open_) path_.push_back(std::move(*open_));
      open_.reset();
    } else if (line == "}") {
      close_case();
      if (path_.empty()) complete_ = true;
      if (!path_.empty()) path_.pop_back();
    } else if (line.starts_with("tu")) {
      read_node(line);
    }
  }

  bool complete() const { return complete_; }
  std::vector<ListedCase> take() { return std::move(cases_); }

 private:
  void read_node(std::string_view line) {
    const size_t start = line.find(label_start);
    if (start == std::string_view::npos || !line.ends_with(label_end)) return;
    close_case();
    std::string_view label = line.substr(start + label_start.size());
    label.remove_suffix(label_end.size());
    open_ = read_label(label);
    open_->disabled = line.substr(0, start).ends_with("color=yellow");
  }

  void close_case() {
    if (!open_) return;
    ListedCase listed = std::move(*open_);
    open_.reset();
    for (size_t i = 1; i < path_.size(); ++i) {  // the first is the module
      listed.suite += (i > 1 ? "/" : "") + path_[i].name;
      listed.labels.insert(listed.labels.end(), path_[i].labels.begin(), path_[i].labels.end());
    }
    cases_.push_back(std::move(listed));
  }

  std::vector<ListedCase> path_;
  std::optional<ListedCase> open_;
  std::vector<ListedCase> cases_;
  bool complete_ = false;
};

std::string full_name(const ListedCase& listed) {
  return listed.suite.empty() ? listed.name : listed.suite + "/" + listed.name;
}

// Another case that the same filter selects; only names with wildcards have one.
const ListedCase* also_selected(const std::vector<ListedCase>& cases, size_t wanted,
                                const std::string& filter) {
  if (!filter.ends_with('*')) return nullptr;
  for (size_t i = 0; i < cases.size(); ++i)
    if (i != wanted && glob_match(filter, full_name(cases[i]))) return &cases[i];
  return nullptr;
}

// The log names every case, even those that do not run; the output must have room for the test's.
constexpr size_t most_logged_cases = 200;

bool is_about_the_log(const std::string& word) {
  return word.starts_with("--log") || word.starts_with("-l");
}

// Only the detailed report shows that Boost.Test has skipped a case, and only the log that one
// has begun and ended: projects send the report elsewhere.
std::vector<std::string> selection(const Target& target, const std::string& filter, size_t cases) {
  std::vector<std::string> words{"--run_test=" + filter, "--color_output=no",
                                 "--report_level=detailed"};
  if (cases <= most_logged_cases && std::ranges::none_of(target.argv, is_about_the_log))
    words.emplace_back(boost_progress_log);
  return words;
}

std::vector<Test> to_tests(const Target& target, const std::vector<ListedCase>& cases) {
  std::vector<Test> tests;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string name = full_name(cases[i]);
    const std::string filter = boost_filter(name);
    Test test = make_test(target, cases[i], name, selection(target, filter, cases.size()));
    if (test.disabled) test.disabled_reason = "disabled by its decorator";
    if (const ListedCase* other = also_selected(cases, i, filter))
      mark_inseparable(test, full_name(*other));
    tests.push_back(std::move(test));
  }
  make_ids_unique(tests);
  return tests;
}

constexpr std::string_view run_option = "--run_test=";

// The log tells in which order they begin and end; a program of many cases has none otherwise.
Result<std::vector<std::string>> boost_words(const std::vector<const Test*>& tests) {
  std::vector<std::string> filters;
  for (const Test* test : tests) {
    const auto words = selection_from(*test, run_option);
    if (words.empty()) return cannot_share(*test, "its command does not select it");
    filters.push_back(words.front().substr(run_option.size()));
  }
  std::vector<std::string> words = selection_from(*tests.front(), run_option);
  if (words.back() != boost_progress_log) {
    if (std::ranges::any_of(tests.front()->command.argv, is_about_the_log))
      return cannot_share(*tests.front(),
                          "its log is needed, and the program's arguments send it elsewhere");
    words.emplace_back(boost_progress_log);
  }
  words.front() = std::string(run_option) + join(filters, ":");
  return words;
}

// It takes 1 for "by the time of day".
uint32_t boost_seed(uint32_t seed) {
  return seed == 1 ? 1'000'001 : seed;
}

// In which order Boost.Test takes the tests of a program that it shuffles: suite by suite, as it
// comes to them, with the C library's random numbers, and past suites of which nothing is wanted.
// A test that draws such numbers itself, or depends on others, makes it another one.
class BoostShuffle {
 public:
  BoostShuffle(const std::vector<const Test*>& listed, const std::vector<size_t>& wanted) {
    for (size_t i = 0; i < listed.size(); ++i)
      add(listed[i]->id.name, i, std::ranges::binary_search(wanted, i));
  }

  // Positions of those that are wanted.
  std::vector<size_t> operator()(uint32_t seed) {
    ::initstate_r(seed, state_.data(), state_.size(), &random_);
    std::vector<size_t> order;
    walk(0, order);
    return order;
  }

 private:
  struct Unit {
    std::vector<size_t> children = {};
    std::map<std::string, size_t, std::less<>> suites = {};  // of these, by name
    std::optional<size_t> test = {};
    bool is_wanted = false;
  };

  void add(std::string_view name, size_t test, bool is_wanted) {
    size_t unit = 0;
    units_[unit].is_wanted |= is_wanted;
    for (size_t slash; (slash = name.find('/')) != name.npos; name.remove_prefix(slash + 1)) {
      unit = suite_in(unit, std::string(name.substr(0, slash)));
      units_[unit].is_wanted |= is_wanted;
    }
    units_[unit].children.push_back(units_.size());
    units_.push_back({.test = test, .is_wanted = is_wanted});
  }

  size_t suite_in(size_t unit, const std::string& name) {
    const auto [known, is_new] = units_[unit].suites.try_emplace(name, units_.size());
    const size_t suite = known->second;
    if (is_new) {
      units_[unit].children.push_back(suite);
      units_.emplace_back();
    }
    return suite;
  }

  void walk(size_t number, std::vector<size_t>& order) {
    const Unit& unit = units_[number];
    if (!unit.is_wanted) return;
    if (unit.test) return order.push_back(*unit.test);
    std::vector<size_t> children = unit.children;
    for (size_t width = children.size(); width >= 2; --width) {
      int32_t drawn = 0;
      ::random_r(&random_, &drawn);
      std::swap(children[width - 1], children[static_cast<size_t>(drawn) % width]);
    }
    for (const size_t child : children) walk(child, order);
  }

  std::vector<Unit> units_{Unit{}};  // the first is the whole program
  std::array<char, 128> state_{};    // as large as that of rand()
  random_data random_{};
};

class BoostTestAdapter : public Adapter {
 public:
  // In the order of the listing; the log tells them apart in the output.
  Result<Command> in_order(const std::vector<const Test*>& order,
                           const std::vector<const Test*>& listed) const override {
    const auto positions = positions_in(listed, order);
    if (!positions) return positions.error();
    if (!std::ranges::is_sorted(*positions))
      return cannot_share(*order.front(), "Boost.Test runs tests in the order of its listing");
    auto words = boost_words(order);
    if (!words) return words.error();
    return with_selection(*order.front(), run_option, std::move(*words));
  }

  Result<Arranged> arrange(const std::vector<const Test*>& tests,
                           const std::vector<const Test*>& listed,
                           const Arrangement& how) const override {
    auto words = boost_words(tests);
    if (!words) return words.error();
    const bool is_shuffled = how.kind == Arrangement::Kind::shuffled;
    if (!is_shuffled && how.kind != Arrangement::Kind::listed)
      return cannot_share(*tests.front(), "Boost.Test keeps its order, or shuffles");
    const std::vector<const Test*> in_order = in_listing_order(tests, listed);
    if (!is_shuffled)
      return Arranged{with_selection(*tests.front(), run_option, std::move(*words)), in_order};
    const uint32_t seed = boost_seed(how.seed);
    words->insert(words->begin() + 1, "--random=" + std::to_string(seed));
    Arranged arranged{
        with_selection(*tests.front(), run_option, std::move(*words)), {}, true, true};
    const auto positions = positions_in(listed, in_order);
    if (!positions) return positions.error();
    for (const size_t position : BoostShuffle(listed, *positions)(seed))
      arranged.tests.push_back(listed[position]);
    return arranged;
  }

  Result<std::vector<Test>> list(const Target& target, const ListOptions& options,
                                 Launcher& launcher) const override {
    const Command command = target_command(target, {"--list_content=DOT"});
    const auto answer = ask(command, options, launcher);
    if (!answer) return answer.error();
    auto cases = parse_boost_graph(answer->errors.text());
    if (!cases) cases = parse_boost_graph(answer->output.text());
    if (!cases)
      return listing_error(command, *answer,
                           "printed no Boost.Test listing (Boost 1.60 or newer is needed)");
    return to_tests(target, *cases);
  }
};

}  // namespace

std::optional<std::vector<ListedCase>> parse_boost_graph(std::string_view output) {
  const size_t start = output.find("digraph G {");
  if (start == std::string_view::npos) return std::nullopt;
  GraphReader reader;
  for (const std::string_view line : split_lines(output.substr(start))) {
    reader.read(line);
    if (reader.complete()) return reader.take();
  }
  return std::nullopt;
}

std::string boost_filter(std::string_view path) {
  constexpr std::string_view taken = ",:*!+@";
  std::vector<std::string> components;
  for (const std::string& component : split(path, '/')) {
    const size_t special = component.find_first_of(taken);
    components.push_back(component.substr(0, special));
    if (special != std::string::npos) components.back() += '*';
  }
  return join(components, "/");
}

const Adapter& boost_test_adapter() {
  static const BoostTestAdapter adapter;
  return adapter;
}

}  // namespace unflake
