#include <fmt/format.h>

#include <algorithm>

#include "patch/repair/repair_sources.h"
#include "patch/repair/syntax.h"
#include "util/text.h"

namespace unflake {
namespace {

// Variables of a file, or members of a class, that are destroyed in the opposite order of their
// definitions: who still uses another one while it goes away has to be defined behind it.
class DefinitionDraft {
 public:
  DefinitionDraft(const PatchRequest& request, RepairSources& sources)
      : request_(request), sources_(sources) {}

  Result<DraftPatch> write() {
    if (request_.hand_overs.empty()) return usage_error("nothing is known to go away too late");
    const auto critical = sources_.place(request_.hand_overs[0].critical.spot);
    if (!critical) return critical.error();
    const auto failing = sources_.place(request_.failure.file, request_.failure.line);
    if (!failing) return failing.error();
    if (critical->unit != failing->unit) return usage_error("the two places are compiled apart");
    unit_ = critical->unit;
    const std::string user = class_at(*critical, true), used = class_at(*failing, false);
    if (user.empty() || used.empty() || user == used)
      return usage_error("what comes too late is no destructor of what still uses another object");
    const auto first = only_of(user), second = only_of(used);
    if (!first || !second || !is_same_scope(*first, *second) || !is_before(*first, *second))
      return usage_error(fmt::format("`{}` and `{}` are not destroyed one after the other",
                                     printable(user), printable(used)));
    if (names(*second, *first))
      return usage_error(fmt::format("`{}` is made from `{}`", printable(spelling(*second)),
                                     printable(spelling(*first))));
    return moved(*first, *second);
  }

 private:
  // The class whose destructor, or any method, a line is in.
  static std::string class_at(const PatchPlace& place, bool is_destructor) {
    const CodeAtLine code = code_at(*place.unit, place.file, place.line);
    std::string found;
    for (const CodeBlock& block : code.blocks) {
      if (!block.is_body || block.is_lambda) continue;
      const CXCursorKind kind = clang().getCursorKind(block.owner);
      const bool is_wanted = is_destructor
                                 ? kind == CXCursor_Destructor
                                 : kind == CXCursor_Destructor || kind == CXCursor_CXXMethod;
      found = is_wanted ? spelling(clang().getCursorSemanticParent(block.owner)) : "";
    }
    return found;
  }

  static bool is_of_class(CXCursor variable, const std::string& name) {
    const std::string type = type_name(variable);
    return type == name || type.ends_with("::" + name);
  }

  // Of the file's variables and members; nothing: there are several, or none.
  std::optional<CXCursor> only_of(const std::string& name) const {
    std::vector<CXCursor> found;
    for (const CXCursor declaration : unit_->top_level(unit_->file()))
      walk(declaration, [&](CXCursor cursor) {
        const CXCursorKind kind = clang().getCursorKind(cursor);
        const CXCursorKind scope = clang().getCursorKind(clang().getCursorSemanticParent(cursor));
        const bool is_variable = kind == CXCursor_VarDecl &&
                                 (scope == CXCursor_Namespace || scope == CXCursor_TranslationUnit);
        if ((is_variable || kind == CXCursor_FieldDecl) && is_of_class(cursor, name) &&
            extent_of(cursor).begin.file == unit_->file())
          found.push_back(cursor);
      });
    return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
  }

  static bool is_same_scope(CXCursor a, CXCursor b) {
    return identity(clang().getCursorSemanticParent(a)) ==
           identity(clang().getCursorSemanticParent(b));
  }

  static bool is_before(CXCursor a, CXCursor b) {
    return extent_of(a).begin.offset < extent_of(b).begin.offset;
  }

  static bool names(CXCursor in, CXCursor variable) {
    return first_below(in,
                       [&](CXCursor each) {
                         const CXCursorKind kind = clang().getCursorKind(each);
                         return (kind == CXCursor_DeclRefExpr || kind == CXCursor_MemberRefExpr) &&
                                identity(clang().getCursorReferenced(each)) == identity(variable);
                       })
        .has_value();
  }

  static size_t line_start(const std::string& text, size_t offset) {
    const size_t feed = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
    return feed == std::string::npos ? 0 : feed + 1;
  }

  Result<DraftPatch> moved(CXCursor first, CXCursor second) const {
    const std::string& text = unit_->text_of(unit_->file());
    const SourceExtent extent = extent_of(second);
    const size_t begin = line_start(text, extent.begin.offset);
    const size_t feed = text.find('\n', extent.end.offset);
    const size_t end = feed == std::string::npos ? text.size() : feed + 1;
    const std::string line = text.substr(begin, end - begin);
    const bool is_alone = std::count(line.begin(), line.end(), ';') == 1 &&
                          line.find_first_not_of(" \t") == extent.begin.offset - begin;
    if (!is_alone || feed == std::string::npos)
      return usage_error(fmt::format("`{}` shares its line", printable(spelling(second))));
    DraftPatch draft;
    draft.idiom = RepairIdiom::definition;
    draft.what = fmt::format("`{}` is defined before `{}`, which uses it while it goes away",
                             printable(spelling(second)), printable(spelling(first)));
    draft.edits.push_back(
        edit(extent_of(first).begin, line_start(text, extent_of(first).begin.offset), "", line));
    draft.edits.push_back(edit(extent.begin, begin, line, ""));
    return draft;
  }

  SourceEdit edit(const Spot& at, size_t offset, std::string old_text, std::string new_text) const {
    SourceEdit edit;
    edit.file = unit_->file();
    edit.line = at.line;
    edit.offset = offset;
    edit.old_text = std::move(old_text);
    edit.new_text = std::move(new_text);
    return edit;
  }

  const PatchRequest& request_;
  RepairSources& sources_;
  std::shared_ptr<SourceUnit> unit_;
};

}  // namespace

Result<DraftPatch> draft_definition(const PatchRequest& request, RepairSources& sources) {
  return DefinitionDraft(request, sources).write();
}

}  // namespace unflake
