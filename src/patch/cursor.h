#pragma once

#include <string>
#include <vector>

#include "patch/libclang.h"

namespace unflake {

// A position in a file that is part of a translation unit.
struct Spot {
  std::string file;  // real path
  int line = 0;
  size_t offset = 0;
};

std::string take_text(CXString text);
std::string spelling(CXCursor cursor);
std::vector<CXCursor> children(CXCursor cursor);
std::vector<CXCursor> arguments(CXCursor call);
bool is_null(CXCursor cursor);
bool is_expression(CXCursor cursor);

// Of what a cursor refers to: the same for all that refer to it.
std::string identity(CXCursor declaration);

// Without references, const and aliases.
std::string type_name(CXCursor cursor);

// Where the characters are, in the body of a macro too.
Spot spelled_at(CXSourceLocation location);
// Where they would be if macros were functions.
Spot expanded_at(CXSourceLocation location);
bool in_macro_body(CXCursor cursor);

// Where an expression stands in its file; inside the body of a macro, where the macro is used.
struct SourceExtent {
  Spot begin, end;
};
SourceExtent extent_of(CXCursor cursor);

// The expressions among the children: no names of types and namespaces.
std::vector<CXCursor> operands(CXCursor cursor);

}  // namespace unflake
