#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string_view>

#include "app/options.h"
#include "app/version.h"
#include "cli/commands.h"
#include "util/text.h"

namespace {

using namespace unflake;

void print_usage(std::FILE* out) {
  fmt::print(out, "unflake {}: finds flaky tests in native test suites\n\n", version);
  for (const CommandEntry& command : commands())
    fmt::print(out, "  unflake {:<10} {}\n", command.name, command.summary);
  fmt::print(out, "\n`unflake COMMAND --help` tells more.\n");
}

int unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const CommandEntry& command : commands()) names.emplace_back(command.name);
  const auto near = nearest(name, names, 1);
  fmt::print(
      stderr, "unflake: there is no command '{}'\n  next: {}\n", printable(name),
      near.empty() ? "`unflake --help` lists the commands" : "did you mean '" + near[0] + "'?");
  return static_cast<int>(ExitCode::usage);
}

Words words_of(int argc, char** argv) {
  Words words;
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (words.has_command)
      words.command.emplace_back(word);
    else if (word == "--")
      words.has_command = true;
    else
      words.options.emplace_back(word);
  }
  return words;
}

int dispatch(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name.empty()) return print_usage(stderr), static_cast<int>(ExitCode::usage);
  if (name == "--help" || name == "-h" || name == "help") return print_usage(stdout), 0;
  if (name == "--version" || name == "version") return fmt::print("unflake {}\n", version), 0;
  const auto found = std::ranges::find(commands(), name, &CommandEntry::name);
  return found == commands().end() ? unknown_command(name) : found->run(words_of(argc, argv));
}

// A file or socket that is opened later must not get the number of a standard stream.
void occupy_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return dispatch(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "unflake: unexpected: {}\n  next: please report this\n", error.what());
    return static_cast<int>(ExitCode::unflake_failed);
  }
}
