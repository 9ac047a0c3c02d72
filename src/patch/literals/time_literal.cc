#include "patch/literals/time_literal.h"

#include <fmt/format.h>

#include "patch/literals/literal_parts.h"
#include "patch/source/source_unit.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr Duration most_rounding = 1ms;  // poll takes whole milliseconds

std::string place_of(const WantedLiteral& wanted) {
  return fmt::format("{}:{}", printable(wanted.file), wanted.line);
}

Result<void> check(const WantedLiteral& wanted, Duration value) {
  if (wanted.line <= 0 || wanted.value <= 0us || value < 0us)
    return usage_error("only a time above zero in a line of a file can be changed",
                       place_of(wanted));
  const auto text = read_source(wanted.file);
  if (!text) return text.error();
  if (static_cast<size_t>(wanted.line) > line_starts(*text).size())
    return usage_error(fmt::format("the file has no line {}", wanted.line), printable(wanted.file),
                       "the source may have changed since the program was built");
  return {};
}

void add_caution(SourceEdit& edit, const std::string& caution) {
  if (!edit.caution.empty() && !caution.empty()) edit.caution += "; ";
  edit.caution += caution;
}

// Looks for the literal again where it was, as if the edit had been made.
Result<void> prove(SourceUnit& unit, const WantedLiteral& wanted, Duration value,
                   SourceEdit& edit) {
  if (auto tried = unit.try_edit(edit); !tried) return tried.error();
  WantedLiteral changed = wanted;
  changed.value = value;
  const auto found = find_literal(unit, variable_uses(unit), changed, value + most_rounding);
  if (!found)
    return usage_error(fmt::format("with `{}` the call would not get {}", printable(edit.new_text),
                                   format_duration(value)),
                       place_of(wanted), found.error().what);
  const auto written = Duration(static_cast<int64_t>(found->time.amount / 1e3));
  if (written > value) add_caution(edit, fmt::format("rounded up to {}", format_duration(written)));
  return {};
}

}  // namespace

Result<SourceEdit> edit_time_literal(const WantedLiteral& wanted, Duration value,
                                     const std::string& compile_commands_folder) {
  if (auto checked = check(wanted, value); !checked) return checked.error();
  const auto unit = source_unit(wanted.file, compile_commands_folder);
  if (!unit) return unit.error();
  auto edit = propose_edit(**unit, wanted, value);
  if (!edit) return edit.error();
  if (auto proved = prove(**unit, wanted, value, *edit); !proved) return proved.error();
  if (edit->file == (*unit)->file()) edit->file = wanted.file;
  return edit;
}

Result<SourceEdit> propose_edit(const SourceUnit& unit, const WantedLiteral& wanted,
                                Duration value) {
  const VariableUses uses = variable_uses(unit);
  const auto found = find_literal(unit, uses, wanted, wanted.value + Duration(1));
  if (!found) return found.error();
  const auto literal = new_literal(unit, found->time, value);
  if (!literal) return literal.error();
  SourceEdit edit;
  edit.file = literal->begin.file;
  edit.line = literal->begin.line;
  edit.offset = literal->begin.offset;
  edit.old_text = unit.piece(literal->begin, literal->end);
  edit.new_text = literal->text;
  edit.caution = caution_of(unit, uses, *found);
  return edit;
}

}  // namespace unflake
