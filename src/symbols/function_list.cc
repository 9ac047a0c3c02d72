#include "symbols/function_list.h"

#include <algorithm>

#include "symbols/demangle.h"
#include "symbols/die_names.h"

namespace unflake {
namespace {

struct Declared {
  uint64_t start = 0;
  uint64_t size = 0;
  std::optional<SourcePlace> place;
  const char* name = nullptr;
};

// Ordered by start. Of several copies of an inline function the first unit's is the one that the
// linker kept.
std::vector<Declared> declared_functions(const Units& units, SourceLines& lines) {
  std::vector<Declared> found;
  units.visit_code([&](const Unit&, const UnitCode& code) {
    for (CompiledFunction function : code.functions) {
      const char* linkage = linkage_name(&function.die);
      const char* name = linkage != nullptr ? linkage : ::dwarf_diename(&function.die);
      found.push_back(
          {function.low, function.high - function.low, lines.declaration(&function.die), name});
    }
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const Declared& a, const Declared& b) { return a.start < b.start; });
  return found;
}

void declare(Function& function, const Declared& declared, const SourceLines& lines) {
  if (declared.place) {
    function.file = lines.file_name(declared.place->file);
    function.line = declared.place->line;
  }
  if (function.mangled.empty() && declared.name != nullptr) {
    function.mangled = declared.name;
    function.name = demangle(declared.name);
  }
}

Function from_symbol(const Symbol& symbol) {
  Function function;
  function.mangled = symbol.name;
  function.name = demangle(symbol.name);
  function.start = symbol.start;
  function.size = symbol.size;
  return function;
}

}  // namespace

std::vector<Function> list_functions(const SymbolTable& symbols, const Units& units,
                                     SourceLines& lines) {
  std::vector<Function> functions;
  functions.reserve(symbols.symbols().size());
  for (const Symbol& symbol : symbols.symbols()) functions.push_back(from_symbol(symbol));
  const size_t known = functions.size();
  size_t next = 0;
  uint64_t end = 0;
  for (const Declared& declared : declared_functions(units, lines)) {
    while (next < known && functions[next].start + functions[next].size <= declared.start) ++next;
    if (next < known && functions[next].start == declared.start) {
      if (functions[next].file.empty()) declare(functions[next], declared, lines);
      continue;
    }
    const uint64_t limit = next < known ? functions[next].start : UINT64_MAX;
    if (declared.start >= limit || declared.start < end) continue;
    Function function;
    function.start = declared.start;
    function.size = std::min(declared.size, limit - declared.start);
    end = function.start + function.size;
    declare(function, declared, lines);
    functions.push_back(std::move(function));
  }
  std::stable_sort(functions.begin(), functions.end(),
                   [](const Function& a, const Function& b) { return a.start < b.start; });
  return functions;
}

}  // namespace unflake
