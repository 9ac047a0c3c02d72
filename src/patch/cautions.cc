#include "patch/cautions.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/base_name.h"
#include "util/text.h"

namespace unflake {
namespace {

bool holds(CXCursor cursor, const Spot& spot) {
  const SourceExtent extent = extent_of(cursor);
  return extent.begin.file == spot.file && extent.begin.offset <= spot.offset &&
         spot.offset < extent.end.offset;
}

std::string unit_name(double nanoseconds) {
  if (nanoseconds >= 1e9) return "seconds";
  if (nanoseconds >= 1e6) return "milliseconds";
  return nanoseconds >= 1e3 ? "microseconds" : "nanoseconds";
}

std::string used_elsewhere(const std::string& name, size_t places) {
  return fmt::format("{} is used at {} other place{}: changing it changes {} too", printable(name),
                     places, places == 1 ? "" : "s", places == 1 ? "that" : "them");
}

std::string left_out(const std::string& function) {
  return fmt::format("it is a default argument of {}(): all calls that leave it out change too",
                     printable(function));
}

void caution_of_variables(const FoundLiteral& found, const VariableUses& uses,
                          std::vector<std::string>& cautions) {
  for (const CXCursor variable : found.time.through) {
    if (clang().getCursorKind(variable) == CXCursor_ParmDecl) {
      if (holds(variable, found.time.numbers[0].at))
        cautions.push_back(left_out(spelling(clang().getCursorSemanticParent(variable))));
      continue;
    }
    const auto use = uses.of.find(identity(variable));
    const size_t places = use == uses.of.end() ? 0 : use->second.places.size();
    if (places > 1) cautions.push_back(used_elsewhere(spelling(variable), places - 1));
  }
}

void caution_of_macro(const SourceUnit& unit, const Spot& literal,
                      std::vector<std::string>& cautions) {
  const auto all = children(unit.root());
  const auto macro = std::find_if(all.begin(), all.end(), [&](CXCursor cursor) {
    return clang().getCursorKind(cursor) == CXCursor_MacroDefinition && holds(cursor, literal);
  });
  if (macro == all.end()) return;
  const std::string name = spelling(*macro);
  const auto places = std::count_if(all.begin(), all.end(), [&](CXCursor cursor) {
    return clang().getCursorKind(cursor) == CXCursor_MacroExpansion && spelling(cursor) == name;
  });
  if (places > 1) cautions.push_back(used_elsewhere(name, static_cast<size_t>(places) - 1));
}

}  // namespace

std::string caution_of(const SourceUnit& unit, const VariableUses& uses,
                       const FoundLiteral& found) {
  std::vector<std::string> cautions;
  const TimeNumber& number = found.time.numbers[0];
  caution_of_variables(found, uses, cautions);
  if (number.is_in_macro) caution_of_macro(unit, number.at, cautions);
  if (found.is_guess)
    cautions.push_back(fmt::format("{}() is taken to count in {}", printable(found.callee),
                                   unit_name(found.unit)));
  if (found.is_default) cautions.push_back(left_out(found.callee));
  if (number.at.file != unit.file())
    cautions.push_back(
        fmt::format("{} may be included by other files", printable(base_name(number.at.file))));
  return join(cautions, "; ");
}

}  // namespace unflake
