#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "suite/adapter.h"
#include "suite/frameworks.h"
#include "util/text.h"

namespace unflake {
namespace {

// Names may begin with, end with or consist of spaces.
constexpr unsigned keep_blanks = (pugi::parse_default | pugi::parse_ws_pcdata) & ~pugi::parse_eol;

std::vector<std::string> tags_in(std::string_view text) {
  std::vector<std::string> tags;
  for (size_t at = 0; (at = text.find('[', at)) != std::string_view::npos;) {
    const size_t end = text.find(']', at);
    if (end == std::string_view::npos) break;
    tags.emplace_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return tags;
}

bool hides(const std::string& tag) {
  return tag.starts_with('.') || tag == "!benchmark" || tag == "hide" || tag == "!hide";
}

ListedCase read_case(const pugi::xml_node& node) {
  ListedCase listed;
  listed.name = node.child_value("Name");
  listed.file = node.child("SourceInfo").child_value("File");
  listed.line = node.child("SourceInfo").child("Line").text().as_int();
  listed.labels = tags_in(node.child_value("Tags"));
  listed.disabled = std::any_of(listed.labels.begin(), listed.labels.end(), hides);
  return listed;
}

// "\t@file:line" at the end of a line.
bool read_location(std::string_view line, ListedCase& listed) {
  const size_t tab = line.rfind("\t@");
  const size_t colon = line.rfind(':');
  if (tab == std::string_view::npos || colon == std::string_view::npos || colon < tab) return false;
  const std::string_view number = line.substr(colon + 1);
  const auto [end, failed] =
      std::from_chars(number.data(), number.data() + number.size(), listed.line);
  if (failed != std::errc() || end != number.data() + number.size()) return false;
  listed.file = line.substr(tab + 2, colon - tab - 2);
  listed.name += line.substr(0, tab);
  return true;
}

// Catch2 puts names that begin with # in quotes when it lists them.
void remove_listing_quotes(std::string& name) {
  if (name.size() > 2 && name.starts_with("\"#") && name.ends_with('"'))
    name = name.substr(1, name.size() - 2);
}

std::string normalised(std::string_view name) {
  std::string text(trim(name));
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// A name pattern as Catch2 understands it.
class NamePattern {
 public:
  explicit NamePattern(std::string_view name) : text_(trim(name)) {
    constexpr std::string_view exclusion = "exclude:";  // a keyword even inside quotes
    if (text_.starts_with(exclusion)) text_.replace(0, 1, "*");
    middle_ = normalised(text_);
    open_start_ = middle_.starts_with('*');
    if (open_start_) middle_.erase(0, 1);
    open_end_ = middle_.ends_with('*');
    if (open_end_) middle_.pop_back();
  }

  std::string quoted() const {
    std::string spec = "\"";
    for (const char c : text_) {
      if (c == '\\' || c == '"' || c == ',') spec += '\\';
      spec += c;
    }
    return spec + '"';
  }

  bool is_wildcard() const { return open_start_ || open_end_; }

  bool matches(const std::string& normalised_name) const {
    if (open_start_ && open_end_) return normalised_name.find(middle_) != std::string::npos;
    if (open_start_) return normalised_name.ends_with(middle_);
    return open_end_ ? normalised_name.starts_with(middle_) : normalised_name == middle_;
  }

 private:
  std::string text_;
  std::string middle_;
  bool open_start_ = false;
  bool open_end_ = false;
};

std::vector<std::string> names_of(const std::vector<ListedCase>& cases) {
  std::vector<std::string> names;
  for (const ListedCase& listed : cases) names.push_back(listed.name);
  return names;
}

std::optional<std::string> spec_excluding_others(const NamePattern& pattern,
                                                 const std::vector<std::string>& normalised_names,
                                                 const std::vector<std::string>& names,
                                                 size_t wanted) {
  std::string spec = pattern.quoted();
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == wanted || !pattern.matches(normalised_names[i])) continue;
    const NamePattern other(names[i]);
    if (other.matches(normalised_names[wanted])) return std::nullopt;
    spec += '~' + other.quoted();
  }
  return spec;
}

std::string twin_of(const std::vector<std::string>& names, size_t wanted) {
  const NamePattern pattern(names[wanted]);
  for (size_t i = 0; i < names.size(); ++i)
    if (i != wanted && pattern.matches(normalised(names[i]))) return names[i];
  return names[wanted];
}

std::vector<Test> to_tests(const Target& target, const std::vector<ListedCase>& cases) {
  const std::vector<std::string> names = names_of(cases);
  const auto specs = catch2_specs(names);
  std::vector<Test> tests;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string spec = specs[i] ? *specs[i] : NamePattern(names[i]).quoted();
    Test test = make_test(target, cases[i], names[i], {spec});
    if (test.disabled) test.disabled_reason = "hidden by its tags";
    if (!specs[i]) mark_inseparable(test, twin_of(names, i));
    tests.push_back(std::move(test));
  }
  make_ids_unique(tests);
  return tests;
}

std::string without_first_lines(std::string text, size_t lines) {
  size_t start = 0;
  for (; lines > 0 && start < text.size(); --lines) {
    const size_t end = text.find('\n', start);
    start = end == std::string::npos ? text.size() : end + 1;
  }
  return text.substr(start);
}

// Asks a program with Catch2 2 for the names that a test spec selects.
class NamesListing {
 public:
  NamesListing(const Target& target, const ListOptions& options, Launcher& launcher)
      : target_(target), options_(options), launcher_(launcher) {}

  // Version 2 exits with the number of tests that it listed, so only a listing without tests can
  // be said to have failed.
  Result<std::vector<ListedCase>> select(const std::string& spec) {
    const Command command = command_for(spec);
    const auto answer = ask(command, options_, launcher_);
    if (!answer) return answer.error();
    const std::string text = without_first_lines(answer->output.text(), preamble_lines_);
    std::vector<ListedCase> cases = parse_catch2_names(text);
    if (cases.empty() && answer->code != 0)
      return listing_error(command, *answer, "failed while listing its tests");
    return cases;
  }

  Result<std::vector<std::string>> tags() {
    const auto answer = ask(target_command(target_, {"--list-tags", "*"}), options_, launcher_);
    if (!answer) return answer.error();
    return parse_catch2_tags(answer->output.text());
  }

  // Lines that the program's own main() prints first would become part of the first name. A
  // listing of nothing shows how many there are.
  Result<void> learn_preamble() {
    const auto answer = ask(command_for("~*"), options_, launcher_);
    if (!answer) return answer.error();
    preamble_lines_ = split_lines(answer->output.text()).size();
    return {};
  }

 private:
  Command command_for(const std::string& spec) const {
    return target_command(target_, {"--list-test-names-only", "--verbosity", "high", spec});
  }

  const Target& target_;
  const ListOptions& options_;
  Launcher& launcher_;
  size_t preamble_lines_ = 0;
};

// Version 2 names the tags of a test only to people, in lines that are broken anywhere. So it is
// asked for the tests of each tag.
Result<void> add_tags(NamesListing& listing, std::vector<ListedCase>& cases) {
  constexpr size_t most_tags = 200;  // each requires starting the program
  auto tags = listing.tags();
  if (!tags) return tags.error();
  tags->resize(std::min(tags->size(), most_tags));
  std::map<std::string, std::vector<ListedCase*>> by_name;
  for (ListedCase& listed : cases) by_name[listed.name].push_back(&listed);
  for (const std::string& tag : *tags) {
    const auto tagged = listing.select("[" + tag + "]");
    if (!tagged) return tagged.error();
    for (const ListedCase& one : *tagged)
      for (ListedCase* listed : by_name[one.name])
        if (listed->line == one.line && listed->file == one.file) listed->labels.push_back(tag);
  }
  return {};
}

Result<std::vector<ListedCase>> list_version_2(const Target& target, const ListOptions& options,
                                               Launcher& launcher) {
  NamesListing listing(target, options, launcher);
  auto all = listing.select("*");
  if (all && !all->empty() && all->front().name.find('\n') != std::string::npos) {
    if (const auto learnt = listing.learn_preamble(); !learnt) return learnt.error();
    all = listing.select("*");
  }
  if (!all || all->empty()) return all;
  const auto hidden = listing.select("[.]");
  if (!hidden) return hidden.error();
  std::set<std::string> hidden_names;
  for (const ListedCase& listed : *hidden) hidden_names.insert(listed.name);
  for (ListedCase& listed : *all) listed.disabled = hidden_names.contains(listed.name);
  if (!options.labels) return all;
  if (const auto added = add_tags(listing, *all); !added) return added.error();
  return all;
}

// Runs just these, and tells the duration of each.
Result<Command> together(const std::vector<const Test*>& tests,
                         const std::vector<const Test*>& listed) {
  std::vector<std::string> specs;
  for (const Test* test : tests) {
    if (test->id.name.find('\n') != std::string::npos)
      return cannot_share(*test, "a name of several lines cannot be found in Catch2's output");
    specs.push_back(test->command.argv.back());
  }
  const bool are_all =
      tests.size() == listed.size() && std::ranges::none_of(tests, &Test::disabled);
  Command command = tests.front()->command;
  command.argv.back() = are_all ? "~[.]" : join(specs, ",");
  command.argv.insert(command.argv.end(), {"--durations", "yes"});
  return command;
}

class Catch2Adapter : public Adapter {
 public:
  // In the order of declaration, or by name; the duration of each test, when it has ended, is what
  // tells them apart in the output.
  Result<Command> in_order(const std::vector<const Test*>& order,
                           const std::vector<const Test*>& listed) const override {
    const auto positions = positions_in(listed, order);
    if (!positions) return positions.error();
    auto command = together(order, listed);
    if (!command) return command.error();
    const bool by_name =
        std::ranges::is_sorted(order, {}, [](const Test* t) { return t->id.name; });
    if (!std::ranges::is_sorted(*positions) && !by_name)
      return cannot_share(*order.front(),
                          "Catch2 runs tests in the order of their declaration or of their names");
    const char* how = std::ranges::is_sorted(*positions) ? "decl" : "lex";
    command->argv.insert(command->argv.end(), {"--order", how});
    return command;
  }

  // Catch2 sorts by hashes of seed and name, so that others do not change the order of a selection.
  Result<Arranged> arrange(const std::vector<const Test*>& tests,
                           const std::vector<const Test*>& listed,
                           const Arrangement& how) const override {
    auto command = together(tests, listed);
    if (!command) return command.error();
    const auto add = [&](std::initializer_list<std::string> words) {
      command->argv.insert(command->argv.end(), words);
    };
    if (how.kind == Arrangement::Kind::reversed)
      return cannot_share(*tests.front(), "Catch2 has no reversed order");
    if (how.kind == Arrangement::Kind::listed) add({"--order", "decl"});
    if (how.kind == Arrangement::Kind::by_name) add({"--order", "lex"});
    if (how.kind == Arrangement::Kind::shuffled)
      add({"--order", "rand", "--rng-seed", std::to_string(how.seed)});
    const bool is_open = how.kind != Arrangement::Kind::listed;
    return Arranged{std::move(*command), in_listing_order(tests, listed), is_open};
  }

  // Version 2 knows the options too, and lists for people whatever the reporter: the answer tells
  // the versions apart better than a version number would.
  Result<std::vector<Test>> list(const Target& target, const ListOptions& options,
                                 Launcher& launcher) const override {
    const Command command = target_command(target, {"--list-tests", "--reporter", "xml", "*"});
    const auto answer = ask(command, options, launcher);
    if (!answer) return answer.error();
    if (const auto cases = parse_catch2_xml(answer->output.text())) return to_tests(target, *cases);
    if (trim(answer->output.text()).empty() && answer->code != 0)
      return listing_error(command, *answer, "failed while listing its tests");
    const auto cases = list_version_2(target, options, launcher);
    if (!cases) return cases.error();
    return to_tests(target, *cases);
  }
};

}  // namespace

std::optional<std::vector<ListedCase>> parse_catch2_xml(std::string_view output) {
  constexpr std::string_view root = "<MatchingTests", end = "</MatchingTests>";
  const size_t start = output.find(root);
  if (start == std::string_view::npos) return std::nullopt;
  output = output.substr(start, output.rfind(end) - start + end.size());
  pugi::xml_document document;
  if (!document.load_buffer(output.data(), output.size(), keep_blanks, pugi::encoding_utf8))
    return std::nullopt;
  std::vector<ListedCase> cases;
  for (const pugi::xml_node& node : document.child("MatchingTests").children("TestCase"))
    cases.push_back(read_case(node));
  return cases;
}

std::vector<ListedCase> parse_catch2_names(std::string_view output) {
  std::vector<ListedCase> cases;
  ListedCase listed;
  for (const std::string_view line : split_lines(output)) {
    if (!read_location(line, listed)) {
      listed.name.append(line).push_back('\n');
      continue;
    }
    remove_listing_quotes(listed.name);
    cases.push_back(std::exchange(listed, {}));
  }
  return cases;
}

std::vector<std::string> parse_catch2_tags(std::string_view output) {
  std::vector<std::string> tags;
  for (const std::string_view line : split_lines(output)) {
    const size_t start = line.find_first_not_of(" 0123456789");
    if (!line.starts_with(' ') || start == std::string_view::npos || line[start] != '[') continue;
    for (std::string& tag : tags_in(line.substr(start))) tags.push_back(std::move(tag));
  }
  return tags;
}

std::vector<std::optional<std::string>> catch2_specs(const std::vector<std::string>& names) {
  std::vector<std::string> normalised_names;
  std::map<std::string, int> count;
  for (const std::string& name : names) ++count[normalised_names.emplace_back(normalised(name))];
  std::vector<std::optional<std::string>> specs;
  for (size_t i = 0; i < names.size(); ++i) {
    const NamePattern pattern(names[i]);
    if (pattern.is_wildcard())
      specs.push_back(spec_excluding_others(pattern, normalised_names, names, i));
    else if (count[normalised_names[i]] == 1)
      specs.push_back(pattern.quoted());
    else
      specs.push_back(std::nullopt);
  }
  return specs;
}

const Adapter& catch2_adapter() {
  static const Catch2Adapter adapter;
  return adapter;
}

}  // namespace unflake
