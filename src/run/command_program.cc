#include "run/command_program.h"

#include <filesystem>

#include "suite/program.h"

namespace unflake {

namespace fs = std::filesystem;

Result<std::string> program_of(const Command& command) {
  if (command.argv.empty()) return internal_error("there is no command to run");
  const std::string& word = command.argv[0];
  std::string path = word;
  if (word.find('/') == std::string::npos) {
    auto found = find_program(word);
    if (!found) return found.error();
    path = std::move(*found);
  } else if (word[0] != '/' && !command.cwd.empty()) {
    path = command.cwd + "/" + word;
  }
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  return failed ? absolute_path(path) : real.string();
}

}  // namespace unflake
