#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "suite/adapter.h"
#include "suite/frameworks.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

constexpr std::string_view filter_characters = ":-*?";

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int>() : 0;
}

const Json& array_at(const Json& object, const char* key) {
  static const Json empty = Json::array();
  if (!object.is_object()) return empty;
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : empty;
}

// The part of the output that is the report: from its first key to the brace in the first column.
std::optional<Json> report_in(std::string_view output) {
  const size_t start = output.find("{\n  \"tests\"");
  if (start == std::string_view::npos) return std::nullopt;
  output.remove_prefix(start);
  const size_t end = output.find("\n}");
  if (end == std::string_view::npos) return std::nullopt;
  Json report = parse_json(output.substr(0, end + 2));
  if (!report.is_object() || !report.contains("testsuites")) return std::nullopt;
  return report;
}

std::string_view without_comment(std::string_view line) {
  line = line.substr(0, line.find("  # "));
  return line;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t") == std::string_view::npos;
}

std::string with_wildcards(std::string_view name) {
  std::string pattern(name);
  for (char& c : pattern)
    if (filter_characters.find(c) != std::string_view::npos) c = '?';
  return pattern;
}

bool is_plain(std::string_view name) {
  return name.find_first_of(filter_characters) == std::string_view::npos;
}

bool is_disabled(const ListedCase& listed) {
  return listed.suite.starts_with("DISABLED_") ||
         listed.suite.find("/DISABLED_") != std::string::npos ||
         listed.name.starts_with("DISABLED_");
}

std::vector<std::string> full_names(const std::vector<ListedCase>& cases) {
  std::vector<std::string> names;
  for (const ListedCase& listed : cases) names.push_back(listed.suite + "." + listed.name);
  return names;
}

const std::string* also_selected(const std::vector<std::string>& names, size_t wanted,
                                 const std::string& filter) {
  if (is_plain(names[wanted])) return nullptr;
  for (size_t i = 0; i < names.size(); ++i)
    if (i != wanted && gtest_filter_selects(filter, names[i])) return &names[i];
  return nullptr;
}

Test to_test(const Target& target, const std::vector<ListedCase>& cases,
             const std::vector<std::string>& names, size_t index) {
  const std::string filter = gtest_filter(names, index);
  std::vector<std::string> selection{"--gtest_filter=" + filter, "--gtest_color=no"};
  if (cases[index].disabled) selection.push_back("--gtest_also_run_disabled_tests");
  Test test = make_test(target, cases[index], names[index], std::move(selection));
  if (test.disabled) test.disabled_reason = "its name begins with DISABLED_";
  if (const std::string* other = also_selected(names, index, filter))
    mark_inseparable(test, *other);
  return test;
}

constexpr std::string_view filter_option = "--gtest_filter=";
constexpr std::string_view disabled_option = "--gtest_also_run_disabled_tests";

// Filters of tests that each select one alone, as one that selects them all. What one of them
// excludes another may want.
std::string joined_filter(const std::vector<const Test*>& order) {
  std::vector<std::string> wanted, excluded;
  for (const Test* test : order) {
    const std::string filter =
        selection_from(*test, filter_option).front().substr(filter_option.size());
    const size_t dash = filter.find('-');
    wanted.push_back(filter.substr(0, dash));
    if (dash != std::string::npos) excluded.push_back(filter.substr(dash + 1));
  }
  return join(wanted, ":") + (excluded.empty() ? "" : "-" + join(excluded, ":"));
}

// GoogleTest's own generator, which has been the same in all versions.
class GtestRandom {
 public:
  explicit GtestRandom(uint32_t seed) : state_(seed) {}

  void shuffle(std::vector<size_t>& range, size_t begin, size_t end) {
    for (size_t width = end - begin; width >= 2; --width)
      std::swap(range[begin + width - 1], range[begin + next(static_cast<uint32_t>(width))]);
  }

 private:
  uint32_t next(uint32_t range) {
    state_ = static_cast<uint32_t>((1103515245ULL * state_ + 12345U) % (1U << 31));
    return state_ % range;
  }

  uint32_t state_;
};

// The tests of a program by their suites, as GoogleTest has them: those of death tests first.
struct GtestSuites {
  std::vector<std::vector<size_t>> tests;  // positions in the list
  size_t death_tests = 0;                  // suites

  explicit GtestSuites(const std::vector<const Test*>& listed) {
    for (size_t i = 0; i < listed.size(); ++i) {
      const bool is_new = i == 0 || listed[i]->suite != listed[i - 1]->suite;
      if (is_new) tests.emplace_back();
      const std::string& suite = listed[i]->suite;
      const std::string_view name = std::string_view(suite).substr(0, suite.rfind('/'));
      death_tests += is_new && (suite.ends_with("DeathTest") || name.ends_with("DeathTest"));
      tests.back().push_back(i);
    }
  }

  // In which order a run that is shuffled with this seed takes them.
  std::vector<size_t> shuffled(uint32_t seed) const {
    GtestRandom random(seed);
    std::vector<size_t> suites(tests.size());
    std::iota(suites.begin(), suites.end(), size_t{0});
    random.shuffle(suites, 0, death_tests);
    random.shuffle(suites, death_tests, suites.size());
    std::vector<std::vector<size_t>> inside = tests;
    for (auto& suite : inside) random.shuffle(suite, 0, suite.size());
    std::vector<size_t> order;
    for (const size_t suite : suites)
      order.insert(order.end(), inside[suite].begin(), inside[suite].end());
    return order;
  }
};

bool keeps(const std::vector<size_t>& running, const std::vector<size_t>& wanted) {
  auto next = wanted.begin();
  for (const size_t position : running)
    if (next != wanted.end() && position == *next) ++next;
  return next == wanted.end();
}

// A filter says nothing of the order, which is that of the listing. But a run can be shuffled, and
// which order a seed gives can be computed.
std::optional<uint32_t> seed_for(const std::vector<size_t>& wanted,
                                 const std::vector<const Test*>& listed) {
  constexpr uint32_t most_seeds = 20000;
  const GtestSuites suites(listed);
  for (uint32_t seed = 1; seed <= most_seeds; ++seed)
    if (keeps(suites.shuffled(seed), wanted)) return seed;
  return std::nullopt;
}

// The words that select just these.
Result<std::vector<std::string>> gtest_words(const std::vector<const Test*>& tests,
                                             const std::vector<const Test*>& listed) {
  const bool with_disabled = std::ranges::any_of(tests, &Test::disabled);
  const auto enabled = std::ranges::count(listed, false, &Test::disabled);
  const bool are_all = !with_disabled && static_cast<size_t>(enabled) == tests.size();
  const std::string filter = are_all ? "*" : joined_filter(tests);
  std::set<std::string_view> wanted;
  for (const Test* test : tests) wanted.insert(test->id.name);
  const bool is_plain_list = filter.find_first_of("*?-") == filter.npos;
  for (const Test* test : listed) {
    const bool would_run = (is_plain_list ? wanted.contains(test->id.name)
                                          : gtest_filter_selects(filter, test->id.name)) &&
                           (with_disabled || !test->disabled);
    if (wanted.contains(test->id.name) != would_run)
      return cannot_share(*test, "GoogleTest's filters cannot select just the tests asked for");
  }
  std::vector<std::string> words{std::string(filter_option) + filter, "--gtest_color=no"};
  if (with_disabled) words.emplace_back(disabled_option);
  return words;
}

void add_shuffle(std::vector<std::string>& words, uint32_t seed) {
  words.emplace_back("--gtest_shuffle");
  words.push_back("--gtest_random_seed=" + std::to_string(seed));
}

class GtestAdapter : public Adapter {
 public:
  Result<Command> in_order(const std::vector<const Test*>& order,
                           const std::vector<const Test*>& listed) const override {
    const auto positions = positions_in(listed, order);
    if (!positions) return positions.error();
    auto words = gtest_words(order, listed);
    if (!words) return words.error();
    if (std::ranges::is_sorted(*positions))
      return with_selection(*order.front(), filter_option, std::move(*words));
    const auto seed = seed_for(*positions, listed);
    if (!seed)
      return cannot_share(*order.front(),
                          "GoogleTest runs all tests of a suite one after another, and no seed "
                          "that was tried gives this order");
    add_shuffle(*words, *seed);
    return with_selection(*order.front(), filter_option, std::move(*words));
  }

  // Which order a seed gives is known before the run, also of some of the tests: GoogleTest
  // shuffles before it selects.
  Result<Arranged> arrange(const std::vector<const Test*>& tests,
                           const std::vector<const Test*>& listed,
                           const Arrangement& how) const override {
    auto words = gtest_words(tests, listed);
    if (!words) return words.error();
    if (how.kind != Arrangement::Kind::listed && how.kind != Arrangement::Kind::shuffled)
      return cannot_share(*tests.front(), "GoogleTest keeps its order, or shuffles");
    std::vector<size_t> order(listed.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (how.kind == Arrangement::Kind::shuffled) {
      add_shuffle(*words, how.seed);
      order = GtestSuites(listed).shuffled(how.seed);
    }
    Arranged arranged{with_selection(*tests.front(), filter_option, std::move(*words)), {}, false};
    std::map<TestId, const Test*> wanted;
    for (const Test* test : tests) wanted.emplace(test->id, test);
    for (const size_t position : order)
      if (const auto found = wanted.find(listed[position]->id); found != wanted.end())
        arranged.tests.push_back(found->second);
    return arranged;
  }

  Result<std::vector<Test>> list(const Target& target, const ListOptions& options,
                                 Launcher& launcher) const override {
    // The report follows the listing on the same stream, and adds where each test is defined.
    const Command command = target_command(
        target, {"--gtest_list_tests", "--gtest_output=json:/dev/stdout", "--gtest_color=no"});
    const auto answer = ask(command, options, launcher);
    if (!answer) return answer.error();
    const std::string output = answer->output.text();
    auto cases = parse_gtest_json(output);
    if (!cases) {
      if (answer->code != 0)
        return listing_error(command, *answer, "failed while listing its tests");
      cases = parse_gtest_text(output);
      if (cases->empty()) return listing_error(command, *answer, "printed no GoogleTest listing");
    }
    const std::vector<std::string> names = full_names(*cases);
    std::vector<Test> tests;
    for (size_t i = 0; i < cases->size(); ++i) tests.push_back(to_test(target, *cases, names, i));
    make_ids_unique(tests);
    return tests;
  }
};

}  // namespace

std::optional<std::vector<ListedCase>> parse_gtest_json(std::string_view output) {
  const auto report = report_in(output);
  if (!report) return std::nullopt;
  std::vector<ListedCase> cases;
  for (const Json& suite : array_at(*report, "testsuites")) {
    for (const Json& test : array_at(suite, "testsuite")) {
      if (!test.is_object()) return std::nullopt;
      ListedCase listed{text_at(suite, "name"),
                        text_at(test, "name"),
                        text_at(test, "file"),
                        number_at(test, "line"),
                        false,
                        {}};
      listed.disabled = is_disabled(listed);
      cases.push_back(std::move(listed));
    }
  }
  return cases;
}

std::vector<ListedCase> parse_gtest_text(std::string_view output) {
  std::vector<ListedCase> cases;
  std::string suite;
  for (const std::string_view line : split_lines(output)) {
    const std::string_view text = without_comment(line);
    if (!text.starts_with(' ')) {
      const bool opens_suite = text.ends_with('.') && is_name(text);
      suite = opens_suite ? text.substr(0, text.size() - 1) : "";
    } else if (!suite.empty() && text.starts_with("  ") && is_name(text.substr(2))) {
      ListedCase listed{suite, std::string(text.substr(2)), "", 0, false, {}};
      listed.disabled = is_disabled(listed);
      cases.push_back(std::move(listed));
    }
  }
  return cases;
}

std::string gtest_filter(const std::vector<std::string>& names, size_t wanted) {
  const std::string pattern = with_wildcards(names[wanted]);
  if (is_plain(names[wanted])) return pattern;
  std::string excluded;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == wanted || !glob_match(pattern, names[i])) continue;
    const std::string other = with_wildcards(names[i]);
    if (!glob_match(other, names[wanted])) excluded += (excluded.empty() ? "-" : ":") + other;
  }
  return pattern + excluded;
}

bool gtest_filter_selects(std::string_view filter, std::string_view name) {
  const size_t dash = filter.find('-');
  const auto any = [&](std::string_view patterns) {
    for (const std::string& pattern : split(patterns, ':'))
      if (glob_match(pattern, name)) return true;
    return false;
  };
  if (!any(filter.substr(0, dash))) return false;
  return dash == std::string_view::npos || !any(filter.substr(dash + 1));
}

const Adapter& gtest_adapter() {
  static const GtestAdapter adapter;
  return adapter;
}

}  // namespace unflake
