#include "patch/proposal.h"

#include "patch/cautions.h"
#include "patch/literal_search.h"
#include "patch/new_literal.h"

namespace unflake {

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
