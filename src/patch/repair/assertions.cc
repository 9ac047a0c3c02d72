#include "patch/repair/syntax.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace unflake {
namespace {

struct Wanted {
  std::string_view name;  // after the prefix
  std::string_view form;  // {0} and {1} are the arguments
  size_t arguments = 1;
};

constexpr Wanted wanted_forms[] = {
    {"TRUE", "{0}", 1},
    {"FALSE", "!({0})", 1},
    {"EQ", "{0} == {1}", 2},
    {"NE", "{0} != {1}", 2},
    {"LT", "{0} < {1}", 2},
    {"LE", "{0} <= {1}", 2},
    {"GT", "{0} > {1}", 2},
    {"GE", "{0} >= {1}", 2},
    {"EQUAL", "{0} == {1}", 2},
    {"THAT", "testing::Value({0}, {1})", 2},
    {"STREQ", "std::string({0}) == {1}", 2},
    {"UNARY", "{0}", 1},
    {"UNARY_FALSE", "!({0})", 1},
    {"MESSAGE", "{0}", 2},
    {"", "{0}", 1},
};

struct Prefix {
  std::string_view text, check;
  bool is_gtest = false;
};

// Longer ones first.
constexpr Prefix prefixes[] = {
    {"BOOST_TEST_REQUIRE", "BOOST_REQUIRE"},
    {"BOOST_REQUIRE_", "BOOST_REQUIRE"},
    {"BOOST_REQUIRE", "BOOST_REQUIRE"},
    {"BOOST_CHECK_", "BOOST_CHECK"},
    {"BOOST_CHECK", "BOOST_CHECK"},
    {"BOOST_TEST", "BOOST_CHECK"},
    {"EXPECT_", "EXPECT_TRUE", true},
    {"ASSERT_", "ASSERT_TRUE", true},
    {"DOCTEST_REQUIRE_", "REQUIRE"},
    {"DOCTEST_CHECK_", "CHECK"},
    {"DOCTEST_REQUIRE", "DOCTEST_REQUIRE"},
    {"DOCTEST_CHECK", "DOCTEST_CHECK"},
    {"CATCH_REQUIRE", "CATCH_REQUIRE"},
    {"CATCH_CHECK", "CATCH_CHECK"},
    {"REQUIRE_", "REQUIRE"},
    {"REQUIRE", "REQUIRE"},
    {"CHECK_", "CHECK"},
    {"CHECK", "CHECK"},
    {"assert", ""},
};

// An operand of a comparison: in parentheses where an operator could bind otherwise.
std::string operand(const std::string& text) {
  int depth = 0;
  for (size_t at = 0; at < text.size();) {
    if (const size_t next = past_literal_or_comment(text, at); next > at) {
      at = next;
      continue;
    }
    const char c = text[at];
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (depth == 0 && std::string_view("=?&|^<>,").find(c) != std::string_view::npos &&
        !(c == '>' && at > 0 && text[at - 1] == '-'))
      return "(" + text + ")";
    ++at;
  }
  return text;
}

std::string condition_from(const Wanted& form, const std::vector<std::string>& arguments) {
  const bool is_whole = form.form == "{0}" || form.form == "!({0})" || form.name == "THAT";
  std::string text(form.form);
  for (size_t i = 0; i < arguments.size() && i < 2; ++i)
    replace_all(text, fmt::format("{{{}}}", i), is_whole ? arguments[i] : operand(arguments[i]));
  return text;
}

std::optional<Assertion> as_assertion(const MacroUse& use) {
  for (const Prefix& prefix : prefixes) {
    if (!use.name.starts_with(prefix.text)) continue;
    const std::string_view rest = std::string_view(use.name).substr(prefix.text.size());
    for (const Wanted& form : wanted_forms)
      if (form.name == rest && form.arguments == use.arguments.size())
        return Assertion{use, condition_from(form, use.arguments), std::string(prefix.check), {}};
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Result<Assertion> assertion_at(const PatchPlace& place) {
  for (const MacroUse& use : macro_uses(*place.unit, place.file)) {
    if (use.first_line > place.line || place.line > use.last_line) continue;
    auto found = as_assertion(use);
    if (!found) continue;
    auto point = point_before(*place.unit, place.file, use.first_line, place.function);
    if (!point) return point.error();
    found->point = *point;
    return *found;
  }
  return usage_error("no assertion whose condition is known is at this line",
                     short_place(place.file, place.line));
}

namespace {

// `return EXIT_FAILURE;`, with or without braces -> `EXIT_FAILURE`
std::string returned_by(const SourceUnit& unit, CXCursor branch) {
  std::string text = source_text(unit, branch);
  std::erase_if(text, [](char c) { return c == '{' || c == '}' || c == ';'; });
  const std::string_view word = trim(text);
  constexpr std::string_view begin = "return ";
  return word.starts_with(begin) ? std::string(trim(word.substr(begin.size()))) : "";
}

bool means_success(const std::string& value) {
  return value == "0" || value == "EXIT_SUCCESS";
}

// What a branch of main asks for before it returns; empty: it decides nothing.
std::string wanted_by(const SourceUnit& unit, CXCursor branch) {
  const auto parts = children(branch);
  if (parts.size() != 2) return "";
  const std::string value = returned_by(unit, parts[1]), condition = source_text(unit, parts[0]);
  if (means_success(value)) return condition;
  const bool is_number = !value.empty() && std::ranges::all_of(value, [](unsigned char c) {
    return std::isdigit(c) != 0;
  });
  return is_number || value == "EXIT_FAILURE" ? "!(" + condition + ")" : "";
}

}  // namespace

Result<Assertion> check_of_main(const std::shared_ptr<SourceUnit>& unit) {
  std::vector<Assertion> found;
  for (const CXCursor function : unit->top_level(unit->file())) {
    if (clang().getCursorKind(function) != CXCursor_FunctionDecl || spelling(function) != "main")
      continue;
    for (const CXCursor body : children(function)) {
      if (clang().getCursorKind(body) != CXCursor_CompoundStmt) continue;
      for (const CXCursor statement : children(body)) {
        if (clang().getCursorKind(statement) != CXCursor_IfStmt) continue;
        const auto point = statement_of(*unit, children(statement)[0]);
        const std::string condition = wanted_by(*unit, statement);
        if (condition.empty() || !point) continue;
        MacroUse use{"",
                     point->file,
                     point->statement.begin,
                     point->statement.end,
                     point->statement.first_line,
                     point->statement.last_line,
                     {}};
        found.push_back({use, condition, "", *point});
      }
    }
  }
  if (found.size() == 1) return found[0];
  return usage_error(found.empty() ? "main returns no failure under a condition of its own"
                                   : "main returns under several conditions",
                     printable(unit->file()));
}

namespace {

constexpr int deepest_call = 3;

bool is_in(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Of classes of the standard library, not const and still only looking.
bool only_looks(const std::string& name) {
  return is_in(
      name, {"begin",       "end",         "front",      "back",          "at",         "data",
             "find",        "operator*",   "operator->", "operator==",    "operator!=", "operator<",
             "operator>",   "operator<=",  "operator>=", "operator bool", "operator!",  "value",
             "equal_range", "lower_bound", "upper_bound"});
}

bool sounds_like_a_change(const std::string& name) {
  constexpr std::string_view words[] = {
      "pop",    "push", "insert",    "erase",   "clear",   "reset", "exchange", "fetch",
      "store",  "take", "next",      "recv",    "receive", "read",  "write",    "send",
      "join",   "wait", "acquire",   "release", "swap",    "move",  "emplace",  "add",
      "remove", "set",  "put",       "close",   "open",    "start", "stop",     "run",
      "post",   "lock", "increment", "accept"};
  const std::string low = lower_case(name);
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return low.starts_with(word); });
}

bool is_system(CXCursor cursor) {
  return clang().Location_isInSystemHeader(clang().getCursorLocation(cursor)) != 0;
}

class Effects {
 public:
  explicit Effects(std::string& doubt) : doubt_(doubt) {}

  std::string of(CXCursor cursor, int calls, int level) {
    if (level > 200) return "it is too deeply nested";
    if (std::string why = of_itself(cursor, calls, level); !why.empty()) return why;
    for (const CXCursor child : children(cursor))
      if (std::string why = of(child, calls, level + 1); !why.empty()) return why;
    return "";
  }

 private:
  std::string of_itself(CXCursor cursor, int calls, int level) {
    switch (clang().getCursorKind(cursor)) {
      case CXCursor_CXXNewExpr:
      case CXCursor_CXXDeleteExpr:
      case CXCursor_CXXThrowExpr:
        return "it allocates, frees or throws";
      case CXCursor_CompoundAssignOperator:
        return written(cursor, calls);
      case CXCursor_BinaryOperator:
        return of_operator(cursor, calls);
      case CXCursor_UnaryOperator:
        return of_step(cursor, calls);
      case CXCursor_CallExpr:
        return of_call(cursor, calls, level);
      default:
        return "";
    }
  }

  std::string of_operator(CXCursor cursor, int calls) {
    const CXBinaryOperatorKind kind = clang().getCursorBinaryOperatorKind(cursor);
    if (kind == CXBinaryOperator_Assign) return written(cursor, calls);
    const auto sides = operands(cursor);
    if (sides.size() == 2 && (kind == CXBinaryOperator_EQ || kind == CXBinaryOperator_NE) &&
        is_text(sides[0]) && is_text(sides[1]))
      return "it would compare addresses of texts";
    return "";
  }

  static bool is_text(CXCursor side) {
    const std::string type = type_name(side);
    return type == "char *" || type == "const char *" || type.starts_with("char[") ||
           type.starts_with("const char[");
  }

  std::string of_step(CXCursor cursor, int calls) {
    switch (clang().getCursorUnaryOperatorKind(cursor)) {
      case CXUnaryOperator_PostInc:
      case CXUnaryOperator_PostDec:
      case CXUnaryOperator_PreInc:
      case CXUnaryOperator_PreDec:
        return written(cursor, calls);
      default:
        return "";
    }
  }

  // A function that was called may change what it has made itself.
  std::string written(CXCursor cursor, int calls) {
    const auto sides = operands(cursor);
    const bool is_own = calls > 0 && !sides.empty() && belongs_to_function(sides[0]);
    return is_own ? "" : "it changes a variable";
  }

  // `it.member[2].other` -> `it`
  static CXCursor root_of(CXCursor expression) {
    for (int level = 0; level < 20; ++level) {
      expression = unwrapped(expression);
      const CXCursorKind kind = clang().getCursorKind(expression);
      const bool is_part = kind == CXCursor_MemberRefExpr || kind == CXCursor_ArraySubscriptExpr;
      const auto parts = operands(expression);
      if (!is_part || parts.empty()) break;
      if (is_pointer(parts[0])) return clang().getNullCursor();
      expression = parts[0];
    }
    return expression;
  }

  static bool is_pointer(CXCursor expression) {
    const std::string type = type_name(unwrapped(expression));
    return type.ends_with("*") || type.ends_with("* const");
  }

  // A variable of a function that dies with its call, or what has no name at all.
  static bool belongs_to_function(CXCursor expression) {
    if (is_null(expression)) return false;
    const CXCursor root = root_of(expression);
    if (is_null(root)) return false;
    const CXCursorKind kind = clang().getCursorKind(root);
    if (kind == CXCursor_CallExpr && spelling(root) == "operator<<")
      return belongs_to_function(changed_by(root, spelling(root)));
    if (kind == CXCursor_CallExpr)
      return clang().getCursorKind(clang().getCursorReferenced(root)) == CXCursor_Constructor;
    return kind == CXCursor_DeclRefExpr && is_local(clang().getCursorReferenced(root));
  }

  // What a method is called on.
  static CXCursor changed_by(CXCursor call, const std::string& name) {
    const auto given = arguments(call);
    return name.starts_with("operator") && !given.empty() ? given[0] : object_of(call);
  }

  static bool is_local(CXCursor variable) {
    const CXCursorKind kind = clang().getCursorKind(variable);
    const CXCursorKind parent = clang().getCursorKind(clang().getCursorSemanticParent(variable));
    const bool is_in_function = parent == CXCursor_FunctionDecl || parent == CXCursor_CXXMethod ||
                                parent == CXCursor_FunctionTemplate;
    return (kind == CXCursor_VarDecl || kind == CXCursor_ParmDecl) && is_in_function &&
           clang().Cursor_getStorageClass(variable) != CX_SC_Static && !is_reference(variable);
  }

  static bool is_reference(CXCursor variable) {
    return take_text(clang().getTypeSpelling(clang().getCursorType(variable))).ends_with("&");
  }

  // What the function has opened itself it may read, close and so on.
  static bool uses_own_things_only(CXCursor call) {
    const auto given = arguments(call);
    return !given.empty() && std::ranges::all_of(given, [](CXCursor argument) {
      return !first_below(argument, [](CXCursor each) { return is_foreign(each, 0); });
    });
  }

  static bool is_foreign(CXCursor each, int level) {
    const CXCursorKind kind = clang().getCursorKind(each);
    if (kind == CXCursor_CXXThisExpr) return true;
    if (kind == CXCursor_MemberRefExpr) {
      const bool is_value =
          clang().getCursorKind(clang().getCursorReferenced(each)) == CXCursor_FieldDecl;
      return is_value && operands(each).empty();  // of `this`
    }
    if (kind != CXCursor_DeclRefExpr) return false;
    const CXCursor variable = clang().getCursorReferenced(each);
    if (clang().getCursorKind(variable) == CXCursor_ParmDecl) return true;
    if (clang().getCursorKind(variable) != CXCursor_VarDecl) return false;
    if (!is_local(variable) || level > deepest_call) return true;
    return first_below(variable,
                       [&](CXCursor part) {
                         const CXCursorKind inside = clang().getCursorKind(part);
                         return inside != CXCursor_VarDecl && is_foreign(part, level + 1);
                       })
        .has_value();
  }

  std::string of_call(CXCursor call, int calls, int level) {
    const CXCursor function = clang().getCursorReferenced(call);
    const std::string name = spelling(call);
    if (is_null(function) || name.empty()) return "";
    if (clang().getCursorKind(function) == CXCursor_Constructor) return "";
    if (clang().getCursorKind(function) == CXCursor_ConversionFunction) return "";
    if (is_in(name, {"move", "forward", "exchange", "swap"}))
      return fmt::format("it calls {}()", name);
    if (clang().getCursorKind(function) == CXCursor_CXXMethod)
      return of_method(call, name, calls, level);
    if (!is_system(function)) return of_own(function, name, calls, level);
    if (calls == 0 || !sounds_like_a_change(name) || !uses_own_things_only(call))
      return of_system(name);
    return "";
  }

  std::string of_method(CXCursor call, const std::string& name, int calls, int level) {
    const CXCursor method = clang().getCursorReferenced(call);
    if (clang().CXXMethod_isConst(method) != 0) return asked_of_others(method);
    if (calls > 0 && belongs_to_function(changed_by(call, name))) return "";
    if (is_system(method) && clang().CXXMethod_isStatic(method) != 0) return of_system(name);
    if (is_system(method)) {
      const std::string owner = spelling(clang().getCursorSemanticParent(method));
      const bool is_map = owner.find("map") != std::string::npos;
      if (only_looks(name) || (name == "operator[]" && !is_map)) return "";
      return fmt::format("{}::{}() may change something", printable(owner), printable(name));
    }
    return of_own(method, name, calls, level);
  }

  // A method that is const may still read from a pipe, or wait for a process.
  static std::string asked_of_others(CXCursor method) {
    const CXCursor definition = clang().getCursorDefinition(method);
    if (is_null(definition) || is_system(method)) return "";
    const auto call = first_below(definition, [](CXCursor each) {
      const CXCursor function = clang().getCursorReferenced(each);
      return clang().getCursorKind(each) == CXCursor_CallExpr && !is_null(function) &&
             clang().getCursorKind(function) == CXCursor_FunctionDecl && is_system(function) &&
             sounds_like_a_change(spelling(each)) && !uses_own_things_only(each);
    });
    return call ? fmt::format("{}() cannot be called again and again: it calls {}()",
                              printable(spelling(method)), printable(spelling(*call)))
                : "";
  }

  std::string of_system(const std::string& name) {
    return sounds_like_a_change(name) ? fmt::format("it calls {}()", printable(name)) : "";
  }

  // Its body is looked at where there is one.
  std::string of_own(CXCursor function, const std::string& name, int calls, int level) {
    const CXCursor definition = clang().getCursorDefinition(function);
    if (!is_null(definition) && calls < deepest_call) {
      for (const CXCursor part : children(definition))
        if (clang().getCursorKind(part) == CXCursor_CompoundStmt)
          if (std::string why = of(part, calls + 1, level + 1); !why.empty())
            return fmt::format("{}() cannot be called again and again: {}", printable(name), why);
      return "";
    }
    if (sounds_like_a_change(name)) return fmt::format("it calls {}()", printable(name));
    doubt_ = fmt::format("{}() is called again and again", printable(name));
    return "";
  }

  std::string& doubt_;
};

}  // namespace

std::string side_effect_of(CXCursor expression, std::string& doubt) {
  return Effects(doubt).of(expression, 0, 0);
}

}  // namespace unflake
