#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "patch/repair/repair_sources.h"

// What idioms ask of a syntax tree.
namespace unflake {

void walk(CXCursor cursor, const std::function<void(CXCursor)>& visit);
std::optional<CXCursor> first_below(CXCursor cursor, const std::function<bool(CXCursor)>& wanted);

// Without what the compiler puts around an expression.
CXCursor unwrapped(CXCursor expression);

// The variable, field or parameter that an expression names; null: it is more than a name.
CXCursor variable_named_by(CXCursor expression);

// `queue` of `queue.push(1)`; null: of a function, or of `this`.
CXCursor object_of(CXCursor call);

std::string source_text(const SourceUnit& unit, CXCursor cursor);
std::string dedented(const std::string& text, const std::string& indent);

// A variable can be used at a place without more: it is declared in a block around it, or is a
// member of the class whose method the place is in.
bool is_visible_at(const SourceUnit& unit, CXCursor variable, const InsertionPoint& point);

// The full statement that an expression belongs to.
std::optional<InsertionPoint> statement_of(const SourceUnit& unit, CXCursor expression);

// Every call in a file.
std::vector<CXCursor> calls_in(const SourceUnit& unit, const std::string& file);

}  // namespace unflake
