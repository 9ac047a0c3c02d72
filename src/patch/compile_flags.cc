#include "patch/compile_flags.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "patch/cursor.h"
#include "patch/source_text.h"
#include "util/project_root.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_folders = 1000;

// A list at least: what libclang cannot read it complains about on the terminal.
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

Result<std::vector<std::string>> compile_flags(const std::string& file, const std::string& folder) {
  if (!folder.empty() && !has_commands(folder))
    return usage_error("there is no compile_commands.json", printable(folder),
                       "let CMake write it with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON");
  const std::string commands = folder.empty() ? commands_folder(file) : folder;
  std::vector<std::string> flags;
  if (!commands.empty()) flags = listed_flags(file, commands);
  return flags.empty() ? guessed_flags(file) : flags;
}

}  // namespace unflake
