#include "suite/command.h"

#include <filesystem>

#include "suite/adapters.h"
#include "suite/program.h"
#include "util/project_root.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

std::string portable_path(const std::string& path, const std::string& project) {
  const fs::path normal = fs::path(path).lexically_normal();
  const fs::path inside = normal.lexically_relative(project);
  if (!inside.empty() && *inside.begin() != "..") return inside.string();
  const fs::path last = normal.has_filename() ? normal : normal.parent_path();
  return last.filename().empty() ? path : last.filename().string();
}

// `/path` and `--option=/path`.
std::string portable_word(const std::string& word, const std::string& project) {
  if (word.starts_with('/')) return portable_path(word, project);
  const size_t equals = word.find("=/");
  if (equals == std::string::npos) return word;
  return word.substr(0, equals + 1) + portable_path(word.substr(equals + 1), project);
}

class CommandAdapter : public Adapter {
 public:
  Result<std::vector<Test>> list(const Target& target, const ListOptions&,
                                 Launcher&) const override {
    if (target.argv.empty())
      return usage_error("no command was given", target.name, "write it behind `--`");
    const auto program = find_program(target.path.empty() ? target.argv.front() : target.path);
    if (!program) return program.error();
    Test test;
    test.id = {target.name, command_name(target.argv, project_root())};
    test.command.argv = target.argv;
    test.command.argv.front() = *program;
    return std::vector<Test>{std::move(test)};
  }
};

}  // namespace

std::string command_name(const std::vector<std::string>& argv, const std::string& project) {
  std::vector<std::string> words;
  for (const std::string& word : argv)
    words.push_back(words.empty() ? fs::path(word).filename().string()
                                  : portable_word(word, project));
  return shell_join(words);
}

const Adapter& command_adapter() {
  static const CommandAdapter adapter;
  return adapter;
}

}  // namespace unflake
