#include "symbols/dwarf.h"

#include <cxxabi.h>
#include <dwarf.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t longest_mangled = 8192;
constexpr size_t longest_name = 65536;
constexpr std::string_view anonymous = "(anonymous namespace)";

struct Free {
  void operator()(char* text) const { std::free(text); }
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The index after the bracket that closes the one at `at`; npos when none does. Angle brackets
// inside of round ones are operators.
size_t behind_bracket(std::string_view text, size_t at) {
  const bool angular = text[at] == '<';
  int round = 0;
  int angle = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '{' || c == '[') ++round;
    if (c == ')' || c == '}' || c == ']') --round;
    if (angular && round == 0 && c == '<') ++angle;
    if (angular && round == 0 && c == '>' && text[i - 1] != '-') --angle;
    if (round < 0) break;
    if (round == 0 && angle == 0) return i + 1;
  }
  return std::string_view::npos;
}

// Puts `instead` in place of every group that begins like this, up to its closing bracket.
void replace_groups(std::string& text, std::string_view opener, std::string_view instead) {
  size_t at = 0;
  while ((at = text.find(opener, at)) != std::string::npos) {
    const size_t end = behind_bracket(text, at + opener.find_first_of("<({"));
    if (end == std::string::npos) return;
    text.replace(at, end - at, instead);
    at += instead.size();
  }
}

// clang numbers the lambdas of a function: $_0
void name_numbered_lambdas(std::string& text) {
  size_t at = 0;
  while ((at = text.find("$_", at)) != std::string::npos) {
    size_t end = at + 2;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    text.replace(at, end - at, "{lambda}");
  }
}

bool starts_at(std::string_view text, size_t at, std::string_view part) {
  return text.substr(at).starts_with(part);
}

// Copies a qualified name token by token and drops it again when it turns out to be a return
// type.
class NameReader {
 public:
  explicit NameReader(std::string text) : text_(std::move(text)) {}

  std::string read() {
    while (at_ < text_.size() && !done_) step();
    return std::move(name_);
  }

 private:
  void step() {
    if (starts_at(text_, at_, anonymous)) return copy(anonymous.size());
    if (starts_operator()) return take_operator();
    switch (text_[at_]) {
      case '(':
        return skip_parameters();
      case '<':
      case '{':
      case '[':
        return copy_group();
      case ' ':
        name_.clear();
        ++at_;
        return;
      default:
        return copy(1);
    }
  }

  void copy(size_t count) {
    name_.append(text_, at_, count);
    at_ += count;
  }

  void copy_group() {
    const size_t end = behind_bracket(text_, at_);
    copy(end == std::string_view::npos ? text_.size() - at_ : end - at_);
  }

  // A function's parameters end the name, unless something local to the function follows.
  void skip_parameters() {
    const size_t end = behind_bracket(text_, at_);
    size_t next = end == std::string_view::npos ? text_.size() : end;
    if (name_ == "decltype") name_.clear();
    for (const std::string_view qualifier : {" const", " volatile", "&", "&", " &", " &&"})
      if (starts_at(text_, next, qualifier)) next += qualifier.size();
    const bool goes_on = starts_at(text_, next, "::") || name_.empty();
    done_ = !goes_on;
    at_ = next;
  }

  bool starts_operator() const {
    constexpr std::string_view word = "operator";
    if (!starts_at(text_, at_, word) || (at_ > 0 && is_word(text_[at_ - 1]))) return false;
    return at_ + word.size() < text_.size() && !is_word(text_[at_ + word.size()]);
  }

  // operator(), operator<<, operator new[], operator bool
  void take_operator() {
    copy(std::strlen("operator"));
    if (starts_at(text_, at_, "()")) return copy(2);
    if (text_[at_] == ' ') {
      while (at_ < text_.size() && text_[at_] != '(') text_[at_] == '<' ? copy_group() : copy(1);
      return;
    }
    while (at_ < text_.size() && std::strchr("<>=!+-*/%^&|~,[]", text_[at_]) != nullptr &&
           text_[at_] != 0)
      copy(1);
    if (starts_at(text_, at_, " <")) ++at_;  // operator<< <char>
  }

  std::string text_;
  size_t at_ = 0;
  std::string name_;
  bool done_ = false;
};

}  // namespace

std::string demangle(const char* mangled) {
  if (std::strncmp(mangled, "_Z", 2) != 0) return mangled;
  if (::strnlen(mangled, longest_mangled + 1) > longest_mangled) return mangled;
  int status = 0;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status));
  return text != nullptr && status == 0 ? text.get() : mangled;
}

std::string without_noise(std::string_view name) {
  std::string text(name.substr(0, longest_name));
  replace_groups(text, "{lambda(", "{lambda}");
  replace_groups(text, "<lambda(", "{lambda}");
  replace_groups(text, "(lambda at ", "{lambda}");
  replace_groups(text, "{unnamed type", "{unnamed}");
  name_numbered_lambdas(text);
  replace_all(text, "std::__cxx11::", "std::");
  replace_all(text, "[abi:cxx11]", "");
  replace_all(text, " >", ">");
  replace_all(text, "std::basic_string<char, std::char_traits<char>, std::allocator<char>>",
              "std::string");
  replace_groups(text, ", std::allocator<", "");
  return text;
}

std::string qualified_name(std::string_view demangled) {
  for (const std::string_view kind : {"non-virtual thunk to ", "virtual thunk to "})
    if (demangled.starts_with(kind)) demangled.remove_prefix(kind.size());
  if (demangled.find('(') == std::string_view::npos)  // of C: without parameters, maybe a clone
    return std::string(demangled.substr(0, demangled.find('.')));
  std::string name = NameReader(without_noise(demangled)).read();
  replace_all(name, "{lambda}::operator()::", "{lambda}::");
  for (const std::string_view call : {"::operator()", "::_FUN", "::__invoke"})
    if (name.ends_with("{lambda}" + std::string(call))) name.resize(name.size() - call.size());
  return name;
}

namespace {

constexpr int deepest_scope = 32;

bool has_call_operator(Dwarf_Die die) {
  Dwarf_Die child;
  if (::dwarf_child(&die, &child) != 0) return false;
  do {
    const char* name = ::dwarf_diename(&child);
    if (name != nullptr && std::string_view(name) == "operator()") return true;
  } while (::dwarf_siblingof(&child, &child) == 0);
  return false;
}

std::string own_name(Dwarf_Die die) {
  const char* name = ::dwarf_diename(&die);
  if (name != nullptr) return without_noise(name);
  if (::dwarf_tag(&die) == DW_TAG_namespace) return "(anonymous namespace)";
  return has_call_operator(die) ? "{lambda}" : "{unnamed}";
}

std::string qualified(const std::string& scope, const std::string& name) {
  if (scope.empty()) return name;
  const bool is_lambda = scope.ends_with("{lambda}") && (name == "operator()" || name == "_FUN");
  return is_lambda ? scope : scope + "::" + name;
}

}  // namespace

const char* linkage_name(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (::dwarf_attr_integrate(die, name, &attribute) != nullptr)
      return ::dwarf_formstring(&attribute);
  return nullptr;
}

const std::string& DieNames::name_of(Dwarf_Die function) {
  const auto known = names_.find(function.addr);
  if (known != names_.end()) return known->second;
  return names_.emplace(function.addr, name_with_linkage(function, 0)).first->second;
}

std::string DieNames::name_with_linkage(Dwarf_Die die, int depth) {
  const char* linkage = linkage_name(&die);
  return linkage != nullptr ? qualified_name(demangle(linkage)) : compose(die, depth);
}

namespace {

// Compilers name the body of a coroutine by what the linker calls it, and give it no other name.
const char* mangled_name(Dwarf_Die die) {
  const char* name = ::dwarf_diename(&die);
  return name != nullptr && std::strncmp(name, "_Z", 2) == 0 ? name : nullptr;
}

}  // namespace

std::string DieNames::compose(Dwarf_Die die, int depth) {
  const Dwarf_Die declared = declared_die(die);
  if (const char* mangled = mangled_name(declared)) return qualified_name(demangle(mangled));
  return qualified(scope_name(declared, depth), own_name(declared));
}

std::string DieNames::scope_name(Dwarf_Die die, int depth) {
  if (depth > deepest_scope) return "";
  std::optional<Dwarf_Die> scope = units_.scope_around(die);
  if (!scope) return "";
  return ::dwarf_tag(&*scope) == DW_TAG_subprogram ? name_with_linkage(*scope, depth + 1)
                                                   : compose(*scope, depth + 1);
}

}  // namespace unflake
