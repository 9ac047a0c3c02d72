#include "suite/doctest.h"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <pugixml.hpp>
#include <tuple>

#include "suite/adapters.h"
#include "util/text.h"

namespace unflake {
namespace {

// doctest writes line feeds in names as they are; XML would have them read as blanks.
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

// One filter option; comparing is much cheaper than matching, and every case is tried against every
// other.
class Filter {
 public:
  explicit Filter(std::string_view name)
      : text_(can_filter(name) ? filter_for(name) : ""), is_glob_(is_glob(text_)) {}

  bool pass(const std::string& name) const {
    if (text_.empty()) return true;
    return is_glob_ ? glob_match(text_, name) : text_ == name;
  }

  void add_to(std::vector<std::string>& words, const char* option) const {
    if (!text_.empty()) words.push_back(option + text_);
  }

 private:
  std::string text_;
  bool is_glob_;
};

// What doctest is told to run, and what it will run then.
struct Filters {
  Filter name;
  Filter suite;
  bool with_skipped;

  explicit Filters(const ListedCase& wanted)
      : name(wanted.name), suite(wanted.suite), with_skipped(wanted.disabled) {}

  bool pass(const ListedCase& listed) const {
    if (listed.disabled && !with_skipped) return false;
    return name.pass(listed.name) && suite.pass(listed.suite);
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> words{"--case-sensitive", "--order-by=file", "--no-colors"};
    name.add_to(words, "--test-case=");
    suite.add_to(words, "--test-suite=");
    if (with_skipped) words.push_back("--no-skip");
    return words;
  }
};

std::string full_name(const ListedCase& listed) {
  return listed.suite.empty() ? listed.name : listed.suite + "/" + listed.name;
}

using Place = std::tuple<std::string, std::string, std::string, int>;

Place place_of(const ListedCase& listed) {
  return {listed.suite, listed.name, listed.file, listed.line};
}

// doctest lists what it would run: cases that only --no-skip brings up are those to skip.
void mark_skipped(std::vector<ListedCase>& all, const std::vector<ListedCase>& unskipped) {
  std::map<Place, int> wanted;
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

class DoctestAdapter : public Adapter {
 public:
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
    std::vector<Test> tests;
    for (size_t i = 0; i < cases.size(); ++i) {
      Test test = make_test(target, cases[i], full_name(cases[i]), doctest_selection(cases, i));
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

std::vector<std::string> doctest_selection(const std::vector<ListedCase>& cases, size_t wanted) {
  const Filters filters(cases[wanted]);
  size_t position = 0, matching = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!filters.pass(cases[i])) continue;
    ++matching;
    if (i == wanted) position = matching;
  }
  std::vector<std::string> selection = filters.arguments();
  if (matching > 1) {
    selection.push_back(fmt::format("--first={}", position));
    selection.push_back(fmt::format("--last={}", position));
  }
  return selection;
}

const Adapter& doctest_adapter() {
  static const DoctestAdapter adapter;
  return adapter;
}

}  // namespace unflake
