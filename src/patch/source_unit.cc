#include "patch/source_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "patch/compile_flags.h"
#include "patch/source_text.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_units = 4;  // of some ten MiB each
constexpr unsigned options = CXTranslationUnit_DetailedPreprocessingRecord |
                             CXTranslationUnit_KeepGoing | CXTranslationUnit_PrecompiledPreamble |
                             CXTranslationUnit_CreatePreambleOnFirstParse;

CXIndex make_index() {
  CXIndexOptions how{};
  how.Size = sizeof how;
  how.StorePreamblesInMemory = 1;
  return clang().createIndexWithOptions(&how);
}

CXTranslationUnit parse(const std::string& file, const std::vector<std::string>& flags) {
  static const CXIndex index = make_index();
  std::vector<const char*> arguments;
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  CXTranslationUnit unit = nullptr;
  const CXErrorCode failed =
      clang().parseTranslationUnit2(index, file.c_str(), arguments.data(),
                                    static_cast<int>(arguments.size()), nullptr, 0, options, &unit);
  return failed == CXError_Success ? unit : nullptr;
}

struct Kept {
  std::string flags;
  std::shared_ptr<SourceUnit> unit;
};

std::shared_ptr<SourceUnit> kept_unit(const std::deque<Kept>& kept, const std::string& file,
                                      const std::string& text, const std::string& flags) {
  for (const Kept& one : kept)
    if (one.flags == flags && one.unit->file() == file) {
      one.unit->restore();
      if (one.unit->is_usable() && one.unit->text_of(file) == text) return one.unit;
    }
  return nullptr;
}

}  // namespace

SourceUnit::SourceUnit(std::string file, std::string text, CXTranslationUnit unit)
    : file_(std::move(file)), unit_(unit), texts_{{file_, std::move(text)}} {}

SourceUnit::~SourceUnit() {
  clang().disposeTranslationUnit(unit_);
}

CXCursor SourceUnit::root() const {
  return clang().getTranslationUnitCursor(unit_);
}

const std::string& SourceUnit::text_of(const std::string& file) const {
  const auto known = texts_.find(file);
  if (known != texts_.end()) return known->second;
  auto text = read_source(file);
  return texts_[file] = text ? *text : std::string();
}

std::string SourceUnit::piece(const Spot& begin, const Spot& end) const {
  const std::string& text = text_of(begin.file);
  if (begin.file != end.file || begin.offset > end.offset || end.offset > text.size()) return "";
  return text.substr(begin.offset, end.offset - begin.offset);
}

std::vector<std::string> SourceUnit::errors() const {
  std::vector<std::string> found;
  const unsigned count = clang().getNumDiagnostics(unit_);
  for (unsigned i = 0; i < count; ++i) {
    const CXDiagnostic diagnostic = clang().getDiagnostic(unit_, i);
    if (clang().getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Error)
      found.push_back(take_text(clang().getDiagnosticSpelling(diagnostic)));
    clang().disposeDiagnostic(diagnostic);
  }
  return found;
}

bool SourceUnit::reparse(CXUnsavedFile* changed) {
  is_usable_ =
      is_usable_ && clang().reparseTranslationUnit(unit_, changed != nullptr ? 1 : 0, changed,
                                                   clang().defaultReparseOptions(unit_)) == 0;
  return is_usable_;
}

Result<void> SourceUnit::try_edit(const SourceEdit& edit) {
  restore();
  const size_t before = errors().size();
  original_ = {edit.file, text_of(edit.file)};
  std::string& edited = texts_[edit.file];
  edited.replace(edit.offset, edit.old_text.size(), edit.new_text);
  CXUnsavedFile unsaved{edit.file.c_str(), edited.data(), edited.size()};
  if (!reparse(&unsaved)) return internal_error("libclang cannot read the file anew", file_);
  const auto now = errors();
  if (now.size() <= before) return {};
  return usage_error(fmt::format("with `{}` the file would not compile: {}",
                                 printable(edit.new_text), printable(now.back())),
                     fmt::format("{}:{}", printable(edit.file), edit.line));
}

void SourceUnit::restore() {
  if (!original_) return;
  texts_[original_->first] = original_->second;
  original_.reset();
  reparse(nullptr);
}

Result<std::shared_ptr<SourceUnit>> source_unit(const std::string& file,
                                                const std::string& compile_commands_folder) {
  // Never destroyed: at exit, libclang may go first.
  static auto& kept = *new std::deque<Kept>;
  if (auto loaded = load_libclang(); !loaded) return loaded.error();
  auto text = read_source(file);
  if (!text) return text.error();
  const std::string path = real_path(file);
  const auto flags = compile_flags(path, compile_commands_folder);
  if (!flags) return flags.error();
  const std::string joined = join(*flags, "\n");
  if (auto known = kept_unit(kept, path, *text, joined)) return known;
  const CXTranslationUnit unit = parse(path, *flags);
  if (unit == nullptr)
    return usage_error("libclang cannot read the file", printable(file),
                       "name the folder of its compile_commands.json");
  kept.push_front({joined, std::make_shared<SourceUnit>(path, *text, unit)});
  if (kept.size() > most_units) kept.pop_back();
  return kept.front().unit;
}

}  // namespace unflake
