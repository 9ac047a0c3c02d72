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

constexpr CommandEntry commands[] = {
    {"list", "list the tests of a target", list_command},
    {"run", "run tests, once or many times, and remember every run", run_command},
    {"detect", "find the flaky tests of a suite in a given time", detect_command},
    {"plan", "what a time spent on reruns is expected to find", plan_command},
    {"history", "what the recorded runs say about a test", history_command},
    {"report", "what makes tests flaky, cause by cause, and the issues about it", report_command},
    {"quarantine", "known failures that do not fail builds for a while", quarantine_command},
    {"stats", "a study of flaky tests on your own data", stats_command},
    {"ingest", "add test reports of other tools to the history", ingest_command},
    {"serve", "receive reports from other machines into a history", serve_command},
    {"train", "which functions set your flaky tests apart from the others", train_command},
    {"trace", "which threads and timing calls a test has", trace_command},
    {"inject", "make a thread of a test late, on purpose, and see what happens", inject_command},
    {"reproduce", "make a failure happen on demand, and measure how late is too late",
     reproduce_command},
    {"explore", "whether a test fails under any schedule of its threads", explore_command},
    {"races", "the data races of a test, with both stacks", races_command},
    {"orders", "which tests depend on what ran before them", orders_command},
    {"factors", "which part of its surroundings changes a test's outcome", factors_command},
    {"replay", "make a recorded failure happen again, also after an edit", replay_command},
    {"explain", "why a recorded failure happens, and what to do about it", explain_command},
    {"prove", "whether a patch repairs a recorded failure, by a rebuild and the same runs again",
     prove_command},
    {"repair", "what must wait for what so that a test passes, tried and proven", repair_command},
    {"balance", "the shortest waits and time-outs that a test can afford", balance_command},
    {"doctor", "what this machine can do and what is missing", doctor_command},
};

void print_usage(std::FILE* out) {
  fmt::print(out, "unflake {}: finds flaky tests in native test suites\n\n", version);
  for (const CommandEntry& command : commands)
    fmt::print(out, "  unflake {:<10} {}\n", command.name, command.summary);
  fmt::print(out, "\n`unflake COMMAND --help` tells more.\n");
}

int unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const CommandEntry& command : commands) names.emplace_back(command.name);
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
  const auto found = std::ranges::find(commands, name, &CommandEntry::name);
  return found == std::end(commands) ? unknown_command(name) : found->run(words_of(argc, argv));
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
