#include "suite/program.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

Error not_runnable(const std::string& word) {
  std::error_code ignored;
  if (fs::is_directory(word, ignored))
    return usage_error(printable(word) + " is a folder", "", "give a program to run");
  if (fs::exists(word, ignored))
    return usage_error(printable(word) + " is not executable", "",
                       "chmod +x it, or start it through its interpreter");
  return usage_error("there is no program " + printable(word), "", "check the path; is it built?");
}

}  // namespace

Result<std::string> find_program(const std::string& word) {
  if (word.find('/') != std::string::npos)
    return is_program(word) ? Result<std::string>(absolute_path(word)) : not_runnable(word);
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / word;
    if (!word.empty() && is_program(candidate)) return absolute_path(candidate);
  }
  if (is_program(word))
    return usage_error(printable(word) + " is not in PATH", "",
                       "write ./" + printable(word) + " for the one in this folder");
  return usage_error("there is no program '" + printable(word) + "' in PATH", "",
                     "check the spelling, or give its path");
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error);
  return (error ? fs::path(path) : full).lexically_normal().string();
}

}  // namespace unflake
