#include "suite/target.h"

#include <fmt/format.h>
#include <regex.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <set>

#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t longest_set = 16 * 1024;
constexpr int deepest_parentheses = 100;
constexpr size_t longest_shown = 60;  // on either side of a mistake
constexpr size_t longest_word = 200;
constexpr size_t most_values = 10;

}  // namespace

// What a node holds: a type with a name of its own cannot have members without one.
namespace set_parts {

enum class Subject { name, target, label, suite, file, all, none };

struct FreeRegex {
  void operator()(regex_t* regex) const {
    ::regfree(regex);
    delete regex;
  }
};
using Regex = std::unique_ptr<regex_t, FreeRegex>;

struct Matcher {
  enum class Kind { glob, exact, part, regex };
  Kind kind = Kind::glob;
  std::string text = {};
  Regex regex = nullptr;

  bool matches(const std::string& value) const {
    switch (kind) {
      case Kind::glob:
        return glob_match(text, value);
      case Kind::exact:
        return value == text;
      case Kind::part:
        return value.find(text) != std::string::npos;
      case Kind::regex:
        return ::regexec(regex.get(), value.c_str(), 0, nullptr, 0) == 0;
    }
    return false;
  }
};

std::vector<std::string> values_of(const Test& test, Subject subject) {
  switch (subject) {
    case Subject::name:
      return {test.id.name};
    case Subject::target:
      return {test.id.target};
    case Subject::label:
      return test.labels;
    case Subject::suite:
      return test.suite.empty() ? std::vector<std::string>() : std::vector{test.suite};
    case Subject::file:
      return test.file.empty() ? std::vector<std::string>() : std::vector{test.file};
    case Subject::all:
    case Subject::none:
      break;
  }
  return {};
}

struct Predicate {
  Subject subject = Subject::all;
  Matcher matcher = {};
  std::string written = {};  // for messages

  bool holds(const Test& test) const {
    if (subject == Subject::all || subject == Subject::none) return subject == Subject::all;
    if (subject == Subject::name && is_whole() && means_id(matcher.text))
      if (matcher.matches(to_string(test.id))) return true;
    return std::ranges::any_of(values_of(test, subject),
                               [&](const std::string& value) { return matches(value); });
  }

 private:
  bool is_whole() const {
    return matcher.kind == Matcher::Kind::glob || matcher.kind == Matcher::Kind::exact;
  }

  // A file may be named without the folders before it.
  bool matches(const std::string& value) const {
    const bool is_tail = subject == Subject::file && matcher.kind == Matcher::Kind::glob;
    return matcher.matches(value) || (is_tail && glob_match("*/" + matcher.text, value));
  }
};

}  // namespace set_parts

namespace {

using namespace set_parts;

struct PredicateName {
  std::string_view word;
  Subject subject;
};

// CTest and Boost.Test say label, Catch2 says tag; to a set it is the same.
constexpr PredicateName predicate_names[] = {
    {"name", Subject::name}, {"target", Subject::target}, {"label", Subject::label},
    {"tag", Subject::label}, {"suite", Subject::suite},   {"file", Subject::file},
    {"all", Subject::all},   {"none", Subject::none},
};

std::string_view plural_of(Subject subject) {
  switch (subject) {
    case Subject::target:
      return "targets";
    case Subject::label:
      return "labels";
    case Subject::suite:
      return "suites";
    case Subject::file:
      return "files";
    case Subject::name:
    case Subject::all:
    case Subject::none:
      break;
  }
  return "names";
}

Result<Regex> compile(const std::string& pattern) {
  auto compiled = std::make_unique<regex_t>();
  const int failed = ::regcomp(compiled.get(), pattern.c_str(), REG_EXTENDED | REG_NOSUB);
  if (failed == 0) return Regex(compiled.release());
  char why[200] = "";
  ::regerror(failed, compiled.get(), why, sizeof why);
  return usage_error(why);
}

std::string in_quotes(std::string_view word) {
  return fmt::format("'{}'", printable(shorten(word, longest_word)));
}

std::string some_of(const std::vector<std::string>& values) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(values.size(), most_values); ++i)
    shown.push_back(in_quotes(values[i]));
  std::string text = join(shown, ", ");
  if (values.size() > most_values) text += fmt::format(" and {} more", values.size() - most_values);
  return text;
}

// What a predicate that no test is in could have meant.
std::string advice_for(const Predicate& predicate, const std::vector<Test>& tests) {
  std::set<std::string> values;
  for (const Test& test : tests) {
    const auto own = values_of(test, predicate.subject);
    values.insert(own.begin(), own.end());
  }
  const std::string_view plural = plural_of(predicate.subject);
  if (values.empty()) return fmt::format("the target tells no {} of its tests", plural);
  const std::vector<std::string> known(values.begin(), values.end());
  const std::string near = did_you_mean(predicate.matcher.text, known, 3);
  if (predicate.subject == Subject::name)
    return near.empty() ? "`unflake list TARGET` shows the tests" : near;
  return fmt::format("{}{}the {} here are {}", near, near.empty() ? "" : " ", plural,
                     some_of(known));
}

size_t characters_in(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

// The part of the text around a place, with a mark below it.
std::string pointed_at(std::string_view text, size_t at) {
  size_t from = at - std::min(at, longest_shown);
  while (from < at && (static_cast<unsigned char>(text[from]) >> 6) == 2) ++from;
  const std::string before = (from > 0 ? "…" : "") + printable(text.substr(from, at - from));
  const std::string after = printable(shorten(text.substr(at), longest_shown));
  return fmt::format("  {}{}\n  {}^", before, after, std::string(characters_in(before), ' '));
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

constexpr std::string_view blanks = " \t\r\n";

}  // namespace

struct TestSet::Node {
  enum class Kind { predicate, all_of, any_of, negation };
  Kind kind = Kind::predicate;
  std::vector<Node> parts;  // one of a negation
  Predicate predicate = {};

  bool contains(const Test& test) const {
    const auto holds = [&](const Node& part) { return part.contains(test); };
    switch (kind) {
      case Kind::predicate:
        return predicate.holds(test);
      case Kind::all_of:
        return std::ranges::all_of(parts, holds);
      case Kind::any_of:
        return std::ranges::any_of(parts, holds);
      case Kind::negation:
        return !holds(parts.front());
    }
    return false;
  }

  void visit(const std::function<void(const Predicate&)>& take) const {
    if (kind == Kind::predicate) take(predicate);
    for (const Node& part : parts) part.visit(take);
  }
};

// set = both {("or" | "|" | "+") both}
// both = one {("and" | "&" | "-") one}
// one = {"not" | "!"} ("(" set ")" | predicate "(" [matcher] ")")
class SetParser {
 public:
  using Node = TestSet::Node;

  explicit SetParser(std::string_view text) : text_(text) {}

  Result<TestSet> parse() {
    if (text_.size() > longest_set)
      return usage_error(fmt::format("the set is longer than {} bytes", longest_set), "-E",
                         "write it with globs or regular expressions");
    auto root = read_union();
    if (!root) return root.error();
    if (!at_end()) return expected(at_, "`and`, `or`, `-` or the end");
    return TestSet(std::make_shared<const Node>(std::move(*root)));
  }

 private:
  Result<Node> read_union() {
    return read_chain(
        Node::Kind::any_of,
        [this](bool&) {
          return take_any({"or", "||", "|", "+"});
        },
        [this] { return read_intersection(); });
  }

  Result<Node> read_intersection() {
    const auto take_operator = [this](bool& negates) {
      negates = take_any({"-"});
      return negates || take_any({"and", "&&", "&"});
    };
    return read_chain(Node::Kind::all_of, take_operator, [this] { return read_one(); });
  }

  // Parts with the same operator between them are side by side, however many there are.
  template <class TakeOperator, class ReadPart>
  Result<Node> read_chain(Node::Kind kind, TakeOperator take_operator, ReadPart read_part) {
    Node chain{kind, {}};
    bool negates = false;
    do {
      auto part = read_part();
      if (!part) return part;
      chain.parts.push_back(negates ? negation_of(std::move(*part)) : std::move(*part));
    } while (take_operator(negates));
    if (chain.parts.size() == 1) return std::move(chain.parts.front());
    return chain;
  }

  Result<Node> read_one() {
    bool negated = false;
    while (take_any({"not", "!"})) negated = !negated;
    auto one = read_operand();
    if (!one || !negated) return one;
    return negation_of(std::move(*one));
  }

  Result<Node> read_operand() {
    if (!take_any({"("})) return read_predicate();
    const size_t opened = at_ - 1;
    if (++depth_ > deepest_parentheses)
      return mistake(opened, fmt::format("there are more than {} parentheses in each other",
                                         deepest_parentheses));
    auto inner = read_union();
    if (!inner) return inner;
    if (!take_any({")"})) return expected(at_, "`and`, `or`, `-` or `)`");
    --depth_;
    return inner;
  }

  Result<Node> read_predicate() {
    skip_blanks();
    const size_t start = at_;
    const std::string_view word = peek_word();
    if (word.empty()) return expected(start, "a predicate such as name(Server.*)");
    const auto* known = std::ranges::find(predicate_names, word, &PredicateName::word);
    if (known == std::end(predicate_names)) return no_predicate(start, word);
    at_ += word.size();
    if (!take_any({"("})) return expected(at_, fmt::format("`(` after `{}`", word));
    auto matcher = read_matcher(known->subject);
    if (!matcher) return matcher.error();
    Node node;
    node.predicate = {known->subject, std::move(*matcher),
                      std::string(trim(text_.substr(start, at_ - start)))};
    return node;
  }

  // Up to the parenthesis that closes the predicate.
  Result<Matcher> read_matcher(Subject subject) {
    const size_t opened = at_ - 1;
    skip_blanks();
    const size_t start = at_;
    if (subject == Subject::all || subject == Subject::none) {
      if (!take_any({")"})) return expected(start, "`)`: all() and none() take nothing");
      return Matcher();
    }
    if (const auto end = end_of_regex()) return read_regex(*end);
    Matcher matcher;
    if (take_any({"="})) matcher.kind = Matcher::Kind::exact;
    if (matcher.kind == Matcher::Kind::glob && take_any({"~"})) matcher.kind = Matcher::Kind::part;
    auto text = read_text(opened);
    if (!text) return text.error();
    matcher.text = std::move(*text);
    if (matcher.text.empty()) return expected(start, "a glob, =exact, ~contains or /regex/");
    return matcher;
  }

  // A slash that closes the predicate's parenthesis after it; without one, the text is a path.
  std::optional<size_t> end_of_regex() const {
    if (at_ >= text_.size() || text_[at_] != '/') return std::nullopt;
    for (size_t i = at_ + 1; i < text_.size(); ++i) {
      if (text_[i] == '\\') {
        ++i;
        continue;
      }
      const size_t next = text_.find_first_not_of(blanks, i + 1);
      if (text_[i] == '/' && next != std::string_view::npos && text_[next] == ')') return i;
    }
    return std::nullopt;
  }

  Result<Matcher> read_regex(size_t end) {
    const size_t start = at_ + 1;
    Matcher matcher{Matcher::Kind::regex, std::string(text_.substr(start, end - start))};
    auto compiled = compile(matcher.text);
    if (!compiled)
      return mistake(start, "this is not a regular expression: " + compiled.error().what);
    matcher.regex = std::move(*compiled);
    at_ = text_.find(')', end) + 1;
    return matcher;
  }

  // Parentheses in it come in pairs, or after a backslash.
  Result<std::string> read_text(size_t opened) {
    std::string text;
    for (int open = 0; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
      const bool escapes = c == '\\' && (next == '(' || next == ')' || next == '\\');
      if (escapes) c = text_[++at_];
      if (!escapes && c == '(') ++open;
      if (!escapes && c == ')' && open-- == 0) {
        ++at_;
        return std::string(trim(text));
      }
      text += c;
    }
    return mistake(opened, "this parenthesis is never closed");
  }

  static Node negation_of(Node node) {
    Node negation{Node::Kind::negation, {}};
    negation.parts.push_back(std::move(node));
    return negation;
  }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size()); }

  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }

  std::string_view peek_word() const {
    size_t end = at_;
    while (end < text_.size() && is_word_character(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  // Operators that are words end at the end of a word.
  bool take_any(std::initializer_list<std::string_view> operators) {
    skip_blanks();
    const std::string_view word = peek_word();
    for (const std::string_view one : operators) {
      const bool is_word = is_word_character(one.front());
      if (is_word ? word != one : !text_.substr(at_).starts_with(one)) continue;
      at_ += one.size();
      return true;
    }
    return false;
  }

  Error mistake(size_t at, const std::string& what, const std::string& next = "") const {
    const size_t column = characters_in(text_.substr(0, at)) + 1;
    return usage_error(fmt::format("{}\n{}", what, pointed_at(text_, at)),
                       fmt::format("-E, column {}", column),
                       next.empty() ? "`unflake list --help` has the words of sets" : next);
  }

  Error expected(size_t at, std::string_view what) const {
    const std::string found =
        at >= text_.size() ? "the set ends" : "there is " + in_quotes(found_at(at));
    return mistake(at, fmt::format("{} where {} is expected", found, what));
  }

  std::string_view found_at(size_t at) const {
    size_t end = at;
    while (end < text_.size() && is_word_character(text_[end])) ++end;
    if (end > at) return text_.substr(at, end - at);
    return text_.substr(at, std::max<size_t>(utf8_length(text_.substr(at)), 1));
  }

  Error no_predicate(size_t at, std::string_view word) const {
    std::vector<std::string> known;
    for (const PredicateName& name : predicate_names) known.emplace_back(name.word);
    const std::string near = did_you_mean(word, known, 1);
    return mistake(at, fmt::format("there is no predicate {}", in_quotes(word)),
                   near.empty() ? "known are: " + join(known, ", ") : near);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

Result<TestSet> TestSet::parse(std::string_view text) {
  return SetParser(text).parse();
}

bool TestSet::contains(const Test& test) const {
  return root_->contains(test);
}

bool TestSet::needs_labels() const {
  bool needs = false;
  root_->visit([&](const Predicate& one) { needs = needs || one.subject == Subject::label; });
  return needs;
}

std::vector<Error> TestSet::unmatched_parts(const std::vector<Test>& tests) const {
  std::vector<Error> unmatched;
  root_->visit([&](const Predicate& one) {
    const auto holds = [&](const Test& test) { return one.holds(test); };
    if (one.subject == Subject::none || std::ranges::any_of(tests, holds)) return;
    unmatched.push_back(
        usage_error(fmt::format("no test is in {}", printable(shorten(one.written, longest_word))),
                    "-E", advice_for(one, tests)));
  });
  return unmatched;
}

bool means_id(std::string_view pattern) {
  return pattern.find(':') != std::string_view::npos;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         size_t most) {
  constexpr size_t longest = 500;  // looking for likeness costs the product of two lengths
  std::vector<std::string> short_ones;
  for (const std::string& one : known)
    if (one.size() <= longest) short_ones.push_back(one);
  std::vector<std::string> near;
  for (const std::string& one : nearest(word.substr(0, longest), short_ones, most))
    near.push_back(in_quotes(one));
  return near.empty() ? "" : "did you mean " + join(near, " or ") + "?";
}

}  // namespace unflake
