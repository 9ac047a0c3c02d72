#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <tuple>

#include "suite/adapter.h"
#include "suite/frameworks.h"
#include "util/text.h"

namespace unflake {
namespace {

// doctest writes line feeds in names as they are; XML would turn them into spaces.
constexpr unsigned raw_attributes =
    pugi::parse_default & ~(pugi::parse_wconv_attribute | pugi::parse_eol);

// The separator of filters and its escape, which older versions do not know.
std::string filter_for(std::string_view name) {
  std::string filter(name);
  for (char& c : filter)
    if (c == ',' || c == '\\') c = '?';
  return filter;
}

// A control character is listed as `\x1B`, which says nothing reliable about the name itself.
bool holds_escape(std::string_view name) {
  const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  for (size_t at = 0; (at = name.find("\\x", at)) != std::string_view::npos; at += 2)
    if (at + 3 < name.size() && is_hex(name[at + 2]) && is_hex(name[at + 3])) return true;
  return false;
}

bool can_filter(std::string_view name) {
  return !name.empty() && !holds_escape(name);
}

// One filter option; none where the name cannot be filtered by.
class Filter {
 public:
  explicit Filter(std::string_view name) : text_(can_filter(name) ? filter_for(name) : "") {}

  bool is_exact() const { return !text_.empty() && !is_glob(text_); }
  bool pass(std::string_view name) const { return text_.empty() || glob_match(text_, name); }

  // How every name that passes begins.
  std::string_view start() const {
    return std::string_view(text_).substr(0, text_.find_first_of("*?"));
  }

  void add_to(std::vector<std::string>& words, const char* option) const {
    if (!text_.empty()) words.push_back(option + text_);
  }

 private:
  std::string text_;
};

// Cases that every filter passes alike.
struct Key {
  std::string_view name;
  std::string_view suite;
  bool skipped = false;
  auto operator<=>(const Key&) const = default;
};

// What doctest is told to run, and what it will then run.
struct Filters {
  Filter name;
  Filter suite;
  bool with_skipped;

  explicit Filters(const ListedCase& wanted)
      : name(wanted.name), suite(wanted.suite), with_skipped(wanted.disabled) {}

  bool pass(const Key& key) const {
    if (key.skipped && !with_skipped) return false;
    return name.pass(key.name) && suite.pass(key.suite);
  }

  // In the order of keys, what passes lies between the first and the last that may.
  Key first() const { return {name.start(), name.is_exact() ? suite.start() : "", false}; }
  bool is_past(const Key& key) const {
    if (!name.is_exact()) return !key.name.starts_with(name.start());
    return key.name != name.start() || !key.suite.starts_with(suite.start());
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> words{"--case-sensitive", "--order-by=file"};
    name.add_to(words, "--test-case=");
    suite.add_to(words, "--test-suite=");
    if (with_skipped) words.push_back("--no-skip");
    return words;
  }
};

// Where the cases of each key are in the list.
using Positions = std::map<Key, std::vector<size_t>>;

Positions positions_of(const std::vector<ListedCase>& cases) {
  Positions positions;
  for (size_t i = 0; i < cases.size(); ++i)
    positions[{cases[i].name, cases[i].suite, cases[i].disabled}].push_back(i);
  return positions;
}

std::vector<std::string> selection_of(const ListedCase& wanted, size_t index,
                                      const Positions& positions) {
  const Filters filters(wanted);
  size_t before = 0, matching = 0;
  for (auto it = positions.lower_bound(filters.first());
       it != positions.end() && !filters.is_past(it->first); ++it) {
    if (!filters.pass(it->first)) continue;
    const std::vector<size_t>& at = it->second;
    matching += at.size();
    before += static_cast<size_t>(std::lower_bound(at.begin(), at.end(), index) - at.begin());
  }
  std::vector<std::string> selection = filters.arguments();
  if (matching > 1) {
    selection.push_back(fmt::format("--first={}", before + 1));
    selection.push_back(fmt::format("--last={}", before + 1));
  }
  return selection;
}

std::string full_name(const ListedCase& listed) {
  return listed.suite.empty() ? listed.name : listed.suite + "/" + listed.name;
}

using CasePlace = std::tuple<std::string, std::string, std::string, int>;

CasePlace place_of(const ListedCase& listed) {
  return {listed.suite, listed.name, listed.file, listed.line};
}

// doctest lists what it would run: cases that only --no-skip brings up are those to skip.
void mark_skipped(std::vector<ListedCase>& all, const std::vector<ListedCase>& unskipped) {
  std::map<CasePlace, int> wanted;
  for (const ListedCase& listed : unskipped) ++wanted[place_of(listed)];
  for (ListedCase& listed : all) listed.disabled = --wanted[place_of(listed)] < 0;
}

Result<std::vector<ListedCase>> ask_for_cases(const Target& target, std::vector<std::string> more,
                                              const ListOptions& options, Launcher& launcher) {
  const Command command = target_command(target, std::move(more));
  const auto answer = ask(command, options, launcher);
  if (!answer) return answer.error();
  auto cases = parse_doctest_xml(answer->output.text());
  if (!cases)
    return listing_error(command, *answer,
                         "printed no doctest listing in XML (doctest 2.3 or newer is needed)");
  return std::move(*cases);
}

constexpr std::string_view first_word = "--case-sensitive";
constexpr std::string_view case_option = "--test-case=", suite_option = "--test-suite=";

std::string value_of(const std::vector<std::string>& words, std::string_view option) {
  for (const std::string& word : words)
    if (word.starts_with(option)) return word.substr(option.size());
  return "";
}

// What doctest is to run together: any of the names in any of the suites, which may be too much.
struct JointFilters {
  std::vector<std::string> names, suites;
  bool with_skipped = false;

  bool pass(const Test& test) const {
    const bool has_suite = !test.suite.empty() && test.id.name.starts_with(test.suite + "/");
    const std::string name = has_suite ? test.id.name.substr(test.suite.size() + 1) : test.id.name;
    const auto is_any = [](const std::vector<std::string>& filters, const std::string& text) {
      return std::ranges::any_of(
          filters, [&](const std::string& filter) { return glob_match(filter, text); });
    };
    return (with_skipped || !test.disabled) && is_any(names, name) &&
           (suites.empty() || is_any(suites, test.suite));
  }

  std::vector<std::string> words(const std::vector<std::string>& order) const {
    std::vector<std::string> all{std::string(first_word), "--duration=true",
                                 std::string(case_option) + join(names, ",")};
    all.insert(all.end(), order.begin(), order.end());
    if (!suites.empty()) all.push_back(std::string(suite_option) + join(suites, ","));
    if (with_skipped) all.emplace_back("--no-skip");
    return all;
  }
};

Result<JointFilters> joint_filters(const std::vector<const Test*>& order,
                                   const std::vector<const Test*>& listed) {
  JointFilters joint;
  for (const Test* test : order) {
    const auto words = selection_from(*test, first_word);
    const std::string name = value_of(words, case_option), suite = value_of(words, suite_option);
    if (name.empty() || !value_of(words, "--first=").empty())
      return cannot_share(*test, "its name does not select it alone");
    joint.names.push_back(name);
    if (!suite.empty()) joint.suites.push_back(suite);
    joint.with_skipped = joint.with_skipped || test->disabled;
  }
  if (joint.suites.size() < joint.names.size()) joint.suites.clear();
  std::set<TestId> wanted;
  for (const Test* test : order) wanted.insert(test->id);
  for (const Test* test : listed)
    if (joint.pass(*test) != wanted.contains(test->id))
      return cannot_share(*test, "doctest's filters cannot select just the tests asked for");
  return joint;
}

class DoctestAdapter : public Adapter {
 public:
  // In the order of their files, or by name; the duration of each test, when it has ended, is what
  // tells them apart in the output.
  Result<Command> in_order(const std::vector<const Test*>& order,
                           const std::vector<const Test*>& listed) const override {
    const auto positions = positions_in(listed, order);
    if (!positions) return positions.error();
    const auto joint = joint_filters(order, listed);
    if (!joint) return joint.error();
    const bool by_name = std::ranges::is_sorted(joint->names);
    if (!std::ranges::is_sorted(*positions) && !by_name)
      return cannot_share(*order.front(),
                          "doctest runs tests in the order of their files or of their names");
    const char* how = std::ranges::is_sorted(*positions) ? "--order-by=file" : "--order-by=name";
    return with_selection(*order.front(), first_word, joint->words({how}));
  }

  // doctest shuffles before it selects, so that others do not change the order of a selection.
  Result<Arranged> arrange(const std::vector<const Test*>& tests,
                           const std::vector<const Test*>& listed,
                           const Arrangement& how) const override {
    const auto joint = joint_filters(tests, listed);
    if (!joint) return joint.error();
    std::vector<std::string> words;
    if (how.kind == Arrangement::Kind::reversed)
      return cannot_share(*tests.front(), "doctest has no reversed order");
    if (how.kind == Arrangement::Kind::listed) words = {"--order-by=file"};
    if (how.kind == Arrangement::Kind::by_name) words = {"--order-by=name"};
    if (how.kind == Arrangement::Kind::shuffled)
      words = {"--order-by=rand", "--rand-seed=" + std::to_string(how.seed)};
    return Arranged{with_selection(*tests.front(), first_word, joint->words(words)),
                    in_listing_order(tests, listed), how.kind != Arrangement::Kind::listed};
  }

  Result<std::vector<Test>> list(const Target& target, const ListOptions& options,
                                 Launcher& launcher) const override {
    const std::vector<std::string> words{"--list-test-cases", "--reporters=xml", "--order-by=file"};
    std::vector<std::string> with_skipped = words;
    with_skipped.push_back("--no-skip");
    auto all = ask_for_cases(target, with_skipped, options, launcher);
    if (!all) return all.error();
    const auto unskipped = ask_for_cases(target, words, options, launcher);
    if (!unskipped) return unskipped.error();
    mark_skipped(*all, *unskipped);
    return to_tests(target, *all);
  }

 private:
  static std::vector<Test> to_tests(const Target& target, const std::vector<ListedCase>& cases) {
    std::vector<std::vector<std::string>> selections = doctest_selections(cases);
    std::vector<Test> tests;
    for (size_t i = 0; i < cases.size(); ++i) {
      Test test = make_test(target, cases[i], full_name(cases[i]), std::move(selections[i]));
      if (test.disabled) test.disabled_reason = "marked with skip()";
      tests.push_back(std::move(test));
    }
    make_ids_unique(tests);
    return tests;
  }
};

}  // namespace

std::optional<std::vector<ListedCase>> parse_doctest_xml(std::string_view output) {
  constexpr std::string_view root = "<doctest ", end = "</doctest>";
  const size_t start = output.find(root);
  const size_t last = output.rfind(end);
  if (start == std::string_view::npos || last == std::string_view::npos || last < start)
    return std::nullopt;
  output = output.substr(start, last + end.size() - start);
  pugi::xml_document document;
  if (!document.load_buffer(output.data(), output.size(), raw_attributes, pugi::encoding_utf8))
    return std::nullopt;
  std::vector<ListedCase> cases;
  for (const pugi::xml_node& node : document.child("doctest").children("TestCase"))
    cases.push_back({node.attribute("testsuite").value(),
                     node.attribute("name").value(),
                     node.attribute("filename").value(),
                     node.attribute("line").as_int(),
                     node.attribute("skipped").as_bool(),
                     {}});
  return cases;
}

std::vector<std::vector<std::string>> doctest_selections(const std::vector<ListedCase>& cases) {
  const Positions positions = positions_of(cases);
  std::vector<std::vector<std::string>> selections;
  for (size_t i = 0; i < cases.size(); ++i)
    selections.push_back(selection_of(cases[i], i, positions));
  return selections;
}

const Adapter& doctest_adapter() {
  static const DoctestAdapter adapter;
  return adapter;
}

}  // namespace unflake
