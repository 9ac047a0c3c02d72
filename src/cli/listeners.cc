#include "cli/listeners.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "lifecycle/owners.h"
#include "util/environment.h"
#include "util/output_file.h"
#include "util/project_root.h"
#include "util/text.h"

namespace unflake {
namespace {

bool is_capable_terminal(int fd) {
  const std::string terminal = environment_variable("TERM");
  return ::isatty(fd) && !terminal.empty() && terminal != "dumb";
}

int columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

TerminalOptions terminal_options(const RunCommand& run, int fd, const Executor& executor) {
  TerminalOptions options;
  options.colour = wants_colour(run.colour, fd);
  options.live = can_be_live(fd);
  options.width = [fd] { return columns(fd); };
  options.clock = [&executor] { return executor.elapsed(); };
  if (run.quiet) options.verbosity = Verbosity::quiet;
  if (run.verbose) options.verbosity = Verbosity::verbose;
  if (run.full) options.stacks = StackDetail::full;
  options.summary.repeat_order = [](uint64_t seed) {
    return fmt::format("--shuffle --seed {}", seed);
  };
  options.summary.next_step = [](const TestId& id, Verdict) {
    return "unflake history " + shell_quote(to_string(id));
  };
  return options;
}

}  // namespace

bool wants_colour(const std::string& choice, int fd) {
  if (choice != "auto") return choice == "always";
  if (!environment_variable("NO_COLOR").empty()) return false;
  if (!environment_variable("CLICOLOR_FORCE").empty()) return true;
  return is_capable_terminal(fd);
}

bool can_be_live(int fd) {
  return is_capable_terminal(fd) && environment_variable("CI").empty();
}

int terminal_of(const RunCommand& run) {
  return run.json ? STDERR_FILENO : STDOUT_FILENO;
}

// History comes first: a run that was told was recorded.
Result<void> Listeners::open(const RunCommand& run, FlakyResult flaky,
                             HistoryRecorder::OpenStore store, const Executor& executor,
                             const Interrupts& interrupts) {
  const int fd = terminal_of(run);
  terminal_sink_ = std::make_unique<FdSink>(fd, interrupts.stop_fd());
  terminal_ =
      std::make_unique<TerminalReport>(*terminal_sink_, terminal_options(run, fd, executor));
  if (store) {
    recorder_ = std::make_unique<HistoryRecorder>(std::move(store),
                                                  [this](const Note& note) { stream_.emit(note); });
    stream_.add(*recorder_);
  }
  stream_.add(*terminal_);
  if (auto opened = open_json(run, interrupts); !opened) return opened;
  if (run.ci && environment_variable("GITHUB_ACTIONS") == "true") open_github();
  return open_junit(run, flaky);
}

std::optional<Error> Listeners::complaint() const {
  if (junit_ && !junit_->written()) return junit_->written().error();
  if (summary_ && !summary_->written()) return summary_->written().error();
  if (recorder_ && !recorder_->all_recorded())
    return internal_error("some runs are not in the history", "",
                          "the note above says where they are");
  for (const auto& sink : json_sinks_)
    if (sink->error() != 0)
      return internal_error(
          fmt::format("the JSON lines could not be written: {}", std::strerror(sink->error())));
  return std::nullopt;
}

Result<void> Listeners::open_json(const RunCommand& run, const Interrupts& interrupts) {
  if (run.json) add_json(STDOUT_FILENO, interrupts);
  if (run.json_file.empty()) return {};
  if (auto prepared = prepare_output_file(run.json_file); !prepared) return prepared;
  json_file_.reset(::open(run.json_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!json_file_)
    return usage_error(fmt::format("the JSON lines cannot be written: {}", std::strerror(errno)),
                       run.json_file, "choose another file for --json-file");
  add_json(json_file_.get(), interrupts);
  return {};
}

void Listeners::add_json(int fd, const Interrupts& interrupts) {
  json_sinks_.push_back(std::make_unique<FdSink>(fd, interrupts.stop_fd()));
  json_.push_back(std::make_unique<JsonLines>(*json_sinks_.back()));
  stream_.add(*json_.back());
}

Result<void> Listeners::open_junit(const RunCommand& run, FlakyResult flaky) {
  if (run.junit.empty()) return {};
  JunitOptions options{run.junit, flaky == FlakyResult::fail};
  if (recorder_) options.session_uuid = [this] { return recorder_->session_uuid(); };
  auto created = JunitReport::create(std::move(options));
  if (!created) return created.error();
  junit_ = std::move(*created);
  stream_.add(*junit_);
  return {};
}

void Listeners::open_github() {
  std::random_device random;
  GithubAnnotations::Options options;
  options.path_of = [root = project_root()](const std::string& file) {
    return repository_path(file, root);
  };
  for (int i = 0; i < 4; ++i) options.secret += fmt::format("{:08x}", random());
  annotations_ = std::make_unique<GithubAnnotations>(*terminal_sink_, std::move(options));
  stream_.add(*annotations_);
  const std::string file = environment_variable("GITHUB_STEP_SUMMARY");
  if (file.empty()) return;
  summary_ = std::make_unique<GithubSummary>(file);
  stream_.add(*summary_);
}

}  // namespace unflake
