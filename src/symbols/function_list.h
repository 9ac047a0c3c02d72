#pragma once

#include <vector>

#include "symbols/image.h"
#include "symbols/source_lines.h"
#include "symbols/symbol_table.h"

namespace unflake {

// What symbol table, DWARF and unwind table know together.
std::vector<Function> list_functions(const SymbolTable& symbols, const Units& units,
                                     SourceLines& lines);

}  // namespace unflake
