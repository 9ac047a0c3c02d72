#include "patch/source/source_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <fstream>

#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr uintmax_t most_bytes = 16u << 20;

}  // namespace

Result<std::string> read_source(const std::string& path) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (!std::filesystem::is_regular_file(status))
    return usage_error("there is no such source file", printable(path),
                       "the program may have been built elsewhere: run where its sources are");
  const auto size = std::filesystem::file_size(path, failed);
  if (failed || size > most_bytes)
    return usage_error(fmt::format("sources of more than {} MiB are not read", most_bytes >> 20),
                       printable(path));
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (!file) return usage_error("cannot read the source file", printable(path));
  return text;
}

std::vector<size_t> line_starts(std::string_view text) {
  std::vector<size_t> starts = {0};
  for (size_t i = 0; i + 1 < text.size(); ++i)
    if (text[i] == '\n') starts.push_back(i + 1);
  return starts;
}

std::string real_path(const std::string& path) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed);
  return failed ? path : real.string();
}

namespace {

namespace fs = std::filesystem;

constexpr size_t most_folders = 1000;

// At least a list: libclang complains on the terminal about what it cannot read.
bool has_commands(const fs::path& folder) {
  std::ifstream file(folder / "compile_commands.json");
  char first = 0;
  return file >> first && first == '[';
}

bool is_build_folder(const fs::path& folder) {
  const std::string name = folder.filename().string();
  constexpr std::array<std::string_view, 3> beginnings = {"build", "cmake-build", "out"};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// The first by name, so that it is the same each time.
fs::path commands_below(const fs::path& folder) {
  if (has_commands(folder)) return folder;
  std::vector<fs::path> found;
  std::error_code failed;
  size_t seen = 0;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (++seen > most_folders) break;
    if (is_build_folder(entry->path()) && has_commands(entry->path()))
      found.push_back(entry->path());
  }
  return found.empty() ? fs::path() : *std::min_element(found.begin(), found.end());
}

// From the file's folder up to the project's.
std::vector<fs::path> folders_above(const fs::path& file) {
  std::vector<fs::path> folders;
  const fs::path root = project_root_of(file.parent_path().string());
  for (fs::path folder = file.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    folders.push_back(folder);
    if (folder == root) break;
  }
  return folders;
}

std::string commands_folder(const fs::path& file) {
  for (const fs::path& folder : folders_above(file))
    if (const fs::path found = commands_below(folder); !found.empty()) return found.string();
  return "";
}

// Without the compiler, what is compiled and where the result goes.
std::vector<std::string> flags_of(CXCompileCommand command, const std::string& file) {
  std::vector<std::string> flags;
  const std::string folder = take_text(clang().CompileCommand_getDirectory(command));
  const unsigned count = clang().CompileCommand_getNumArgs(command);
  for (unsigned i = 1; i < count; ++i) {
    const std::string argument = take_text(clang().CompileCommand_getArg(command, i));
    if (argument == "-o") {
      ++i;
    } else if (argument != "-c" && argument != "--" &&
               real_path((fs::path(folder) / argument).string()) != file) {
      flags.push_back(argument);
    }
  }
  flags.push_back("-working-directory=" + folder);
  return flags;
}

std::vector<std::string> listed_flags(const std::string& file, const std::string& folder) {
  CXCompilationDatabase_Error failed = CXCompilationDatabase_NoError;
  const auto database = clang().CompilationDatabase_fromDirectory(folder.c_str(), &failed);
  if (failed != CXCompilationDatabase_NoError) return {};
  const auto commands = clang().CompilationDatabase_getCompileCommands(database, file.c_str());
  std::vector<std::string> flags;
  if (commands != nullptr && clang().CompileCommands_getSize(commands) > 0)
    flags = flags_of(clang().CompileCommands_getCommand(commands, 0), file);
  if (commands != nullptr) clang().CompileCommands_dispose(commands);
  clang().CompilationDatabase_dispose(database);
  return flags;
}

std::vector<std::string> guessed_flags(const fs::path& file) {
  std::vector<std::string> flags;
  if (file.extension() != ".c") flags = {"-x", "c++", "-std=c++20"};
  std::error_code failed;
  for (const fs::path& folder : folders_above(file))
    for (const fs::path& include : {folder, folder / "include", folder / "src"})
      if (fs::is_directory(include, failed)) flags.push_back("-I" + include.string());
  return flags;
}

}  // namespace

std::string compile_commands_of(const std::string& file, const std::string& folder) {
  return folder.empty() ? commands_folder(file) : folder;
}

std::string compile_commands_above(const std::string& program) {
  for (fs::path folder = fs::path(program).parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (has_commands(folder)) return folder.string();
  return "";
}

std::vector<std::string> compiled_files(const std::string& folder) {
  CXCompilationDatabase_Error failed = CXCompilationDatabase_NoError;
  if (!load_libclang() || folder.empty()) return {};
  const auto database = clang().CompilationDatabase_fromDirectory(folder.c_str(), &failed);
  if (failed != CXCompilationDatabase_NoError) return {};
  const auto commands = clang().CompilationDatabase_getAllCompileCommands(database);
  std::vector<std::string> files;
  for (unsigned i = 0; i < clang().CompileCommands_getSize(commands); ++i)
    files.push_back(take_text(
        clang().CompileCommand_getFilename(clang().CompileCommands_getCommand(commands, i))));
  clang().CompileCommands_dispose(commands);
  clang().CompilationDatabase_dispose(database);
  return files;
}

Result<std::vector<std::string>> compile_flags(const std::string& file, const std::string& folder) {
  if (!folder.empty() && !has_commands(folder))
    return usage_error("there is no compile_commands.json", printable(folder),
                       "let CMake write it with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON");
  const std::string commands = compile_commands_of(file, folder);
  std::vector<std::string> flags;
  if (!commands.empty()) flags = listed_flags(file, commands);
  return flags.empty() ? guessed_flags(file) : flags;
}

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

namespace {

// There are tens of thousands in a unit, of a few hundred files.
class FileFilter {
 public:
  explicit FileFilter(const std::string& file) : file_(file) {}

  static CXChildVisitResult visit(CXCursor cursor, CXCursor, CXClientData data) {
    auto& filter = *static_cast<FileFilter*>(data);
    CXFile file = nullptr;
    clang().getFileLocation(clang().getCursorLocation(cursor), &file, nullptr, nullptr, nullptr);
    const auto [known, is_new] = filter.is_wanted_.try_emplace(file, false);
    if (is_new && file != nullptr)
      known->second = place_in_file(clang().getCursorLocation(cursor)).file == filter.file_;
    if (known->second) filter.found.push_back(cursor);
    return CXChildVisit_Continue;
  }

  std::vector<CXCursor> found;

 private:
  const std::string& file_;
  std::map<CXFile, bool> is_wanted_;
};

}  // namespace

const std::vector<CXCursor>& SourceUnit::top_level(const std::string& file) const {
  const auto known = top_level_.find(file);
  if (known != top_level_.end()) return known->second;
  FileFilter filter(file);
  clang().visitChildren(root(), FileFilter::visit, &filter);
  return top_level_[file] = std::move(filter.found);
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

bool SourceUnit::reparse(std::vector<CXUnsavedFile> changed) {
  top_level_.clear();
  is_usable_ = is_usable_ && clang().reparseTranslationUnit(
                                 unit_, static_cast<unsigned>(changed.size()), changed.data(),
                                 clang().defaultReparseOptions(unit_)) == 0;
  return is_usable_;
}

Result<void> SourceUnit::change_texts(const std::vector<SourceEdit>& edits) {
  std::map<std::string, std::vector<SourceEdit>> files;
  for (const SourceEdit& edit : edits) files[real_path(edit.file)].push_back(edit);
  for (auto& [file, changes] : files) {
    originals_[file] = text_of(file);
    auto edited = edited_text(originals_[file], std::move(changes));
    if (!edited) return edited.error();
    texts_[file] = std::move(*edited);
  }
  return {};
}

Result<void> SourceUnit::try_edits(const std::vector<SourceEdit>& edits) {
  if (originals_.empty()) own_errors_ = errors().size();
  const size_t before = own_errors_.value_or(0);
  take_texts_back();
  if (auto changed = change_texts(edits); !changed) return changed.error();
  std::vector<CXUnsavedFile> unsaved;
  for (const auto& [file, original] : originals_)
    unsaved.push_back({file.c_str(), texts_[file].data(), texts_[file].size()});
  if (!reparse(std::move(unsaved)))
    return internal_error("libclang cannot read the file anew", file_);
  const auto now = errors();
  if (now.size() <= before || edits.empty()) return {};
  return usage_error(
      fmt::format("with `{}` the file would not compile: {}",
                  printable(std::string(trim(edits.back().new_text))), printable(now.back())),
      fmt::format("{}:{}", printable(edits.back().file), edits.back().line));
}

void SourceUnit::take_texts_back() {
  for (const auto& [file, original] : originals_) texts_[file] = original;
  originals_.clear();
}

void SourceUnit::restore() {
  if (originals_.empty()) return;
  take_texts_back();
  reparse({});
}

Result<std::shared_ptr<SourceUnit>> source_unit(const std::string& file,
                                                const std::string& compile_commands_folder) {
  // Never destroyed: at exit, libclang may be gone first.
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
