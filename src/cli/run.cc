#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "cli/options.h"
#include "history/recorder.h"
#include "report/json_lines.h"
#include "report/junit.h"
#include "report/terminal.h"
#include "run/local_executor.h"
#include "search/session.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr const char* help =
    R"(Runs tests, each alone in a process of its own, and remembers every run.

  unflake run ./server_test                        every test once
  unflake run ./server_test 'Server.*' -n 100      100 runs of each that matches
  unflake run ./server_test --until-fail           again and again until it fails
  unflake run build --retries 2 --junit out.xml    a CTest build folder, failures tried again
  unflake run -- ./script.sh --fast                any command; its exit status decides

Exit code 0: all passed; 1: a test failed in all of its runs; 2: bad usage; 3: nothing failed for
good, but a test is flaky (see --flaky); 4: unflake itself failed; 128 + N: stopped by signal N.)";

constexpr Duration default_timeout = 10min;

struct RunCommand {
  TargetOptions target;
  HistoryOptions history;
  std::optional<int> repeat;
  std::optional<int> retries;
  std::optional<size_t> jobs;
  std::optional<Duration> duration, timeout, grace;
  std::optional<uint64_t> seed;
  std::optional<std::string> flaky;
  std::string json_file, junit, profile = "default", config, colour = "auto";
  bool until_fail = false, fail_fast = false, shuffle = false, no_history = false;
  bool json = false, quiet = false, verbose = false, core_dumps = false;
  size_t max_output_kib = 1024;
};

void add_options(CLI::App& app, RunCommand& run) {
  run.target.add_to(app);
  app.add_flag("--include-disabled", run.target.include_disabled,
               "also run disabled and hidden tests");
  app.add_option("-n,--repeat", run.repeat, "runs of each test [1]")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_flag("--until-fail", run.until_fail, "repeat each test until its first failure");
  add_duration(app, "--duration", run.duration, "repeat for this long");
  app.add_option("--retries", run.retries, "more tries for a test that fails [0]")
      ->check(CLI::Range(0, 1'000'000))
      ->envname("UNFLAKE_RETRIES");
  app.add_option("-j,--jobs", run.jobs, "runs at the same time [1]")
      ->check(CLI::Range(1, 1024))
      ->envname("UNFLAKE_JOBS");
  app.add_flag("--shuffle", run.shuffle, "another order in every round");
  app.add_option("--seed", run.seed, "repeat a shuffled order (implies --shuffle)");
  add_duration(app, "--timeout", run.timeout, "for each run [the suite's own, else 10m]")
      ->envname("UNFLAKE_TIMEOUT");
  add_duration(app, "--grace", run.grace, "between SIGTERM and SIGKILL at a time-out [2s]")
      ->envname("UNFLAKE_GRACE");
  app.add_flag("--fail-fast", run.fail_fast, "start nothing after a failure that is not retried");
  app.add_option("--flaky", run.flaky,
                 "exit code when tests are only flaky: tell (3), pass (0), fail (1)")
      ->check(CLI::IsMember({"tell", "pass", "fail"}))
      ->envname("UNFLAKE_FLAKY");
  app.add_flag("--json", run.json, "events as JSON lines on standard output");
  app.add_option("--json-file", run.json_file, "events as JSON lines into a file")
      ->type_name("FILE");
  app.add_option("--junit", run.junit, "write JUnit XML")->type_name("FILE");
  app.add_flag("-q,--quiet", run.quiet, "only failures and the summary");
  app.add_flag("-v,--verbose", run.verbose, "every run, with its output");
  app.add_option("--color", run.colour, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  run.history.add_to(app);
  app.add_flag("--no-history", run.no_history, "do not record the runs");
  app.add_option("--profile", run.profile, "a profile of the configuration [default]")
      ->envname("UNFLAKE_PROFILE");
  app.add_option("--config", run.config, "the configuration's file [.unflake/config.toml]")
      ->type_name("FILE");
  app.add_option("--max-output", run.max_output_kib,
                 "KiB of a run's output that are kept, first and last half [1024]")
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--core-dumps", run.core_dumps, "let crashing tests dump core");
}

SessionPolicy policy_of(const RunCommand& run, bool live) {
  SessionPolicy policy;
  const bool endless = !run.repeat && (run.until_fail || run.duration);
  policy.repeat = endless ? 0 : run.repeat.value_or(1);
  policy.until_fail = run.until_fail;
  policy.fail_fast = run.fail_fast;
  policy.duration = run.duration;
  if (run.seed)
    policy.shuffle_seed = run.seed;
  else if (run.shuffle)
    policy.shuffle_seed = std::random_device()();
  if (live) policy.tick = 100ms;
  return policy;
}

// The command line wins over an override, an override over the suite, the suite over the profile.
std::vector<PlannedTest> plan_tests(const SelectedTests& tests, const RunCommand& run,
                                    const Config& config) {
  std::vector<PlannedTest> plan = with_fixtures(tests.selected, tests.all);
  for (PlannedTest& planned : plan) {
    planned.retries = run.retries.value_or(config.settings.retries.value_or(0));
    planned.timeout =
        planned.test->timeout.value_or(config.settings.timeout.value_or(default_timeout));
    for (const Override& change : config.overrides) {
      if (!glob_match(change.test, to_string(planned.test->id))) continue;
      if (change.retries && !run.retries) planned.retries = *change.retries;
      planned.timeout = change.timeout.value_or(planned.timeout);
      if (!change.serial) continue;
      auto changed = std::make_shared<Test>(*planned.test);
      changed->serial = *change.serial;
      planned.test = std::move(changed);
    }
    planned.timeout = run.timeout.value_or(planned.timeout);
  }
  return plan;
}

bool variable_is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

bool wants_colour(const std::string& choice, int fd) {
  if (choice != "auto") return choice == "always";
  if (variable_is_set("NO_COLOR")) return false;
  if (variable_is_set("CLICOLOR_FORCE")) return true;
  const char* terminal = std::getenv("TERM");
  return ::isatty(fd) && terminal && std::string_view(terminal) != "dumb";
}

bool can_be_live(int fd) {
  const char* terminal = std::getenv("TERM");
  return ::isatty(fd) && terminal && std::string_view(terminal) != "dumb" && !variable_is_set("CI");
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
  options.summary.repeat_order = [](uint64_t seed) {
    return fmt::format("--shuffle --seed {}", seed);
  };
  options.summary.next_step = [](const TestId& id, Verdict) {
    return "unflake history " + shell_quote(to_string(id));
  };
  return options;
}

// Standard output belongs to the JSON lines when they are asked for.
int terminal_of(const RunCommand& run) {
  return run.json ? STDERR_FILENO : STDOUT_FILENO;
}

// Everything that listens to the session. History comes first: a run that was told was recorded.
class Listeners {
 public:
  Result<void> open(const RunCommand& run, Store* store, const Executor& executor) {
    const int terminal_fd = terminal_of(run);
    terminal_sink_ = std::make_unique<FdSink>(terminal_fd);
    terminal_ = std::make_unique<TerminalReport>(*terminal_sink_,
                                                 terminal_options(run, terminal_fd, executor));
    if (store) {
      recorder_ = std::make_unique<HistoryRecorder>(
          *store, [this](const Note& note) { terminal_->on(note); });
      stream_.add(*recorder_);
    }
    stream_.add(*terminal_);
    if (const auto opened = open_json(run); !opened) return opened;
    return open_junit(run);
  }

  EventStream& stream() { return stream_; }

  // What could not be written although the session went well.
  std::optional<Error> complaint() const {
    if (junit_ && !junit_->written()) return junit_->written().error();
    if (recorder_ && !recorder_->all_recorded())
      return internal_error("some runs are not in the history", "", "see the note above");
    for (const auto& sink : json_sinks_)
      if (sink->error() != 0)
        return internal_error(
            fmt::format("the JSON lines could not be written: {}", std::strerror(sink->error())));
    return std::nullopt;
  }

 private:
  Result<void> open_json(const RunCommand& run) {
    if (run.json) add_json(STDOUT_FILENO);
    if (run.json_file.empty()) return {};
    json_file_.reset(::open(run.json_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!json_file_)
      return usage_error(fmt::format("cannot be written: {}", std::strerror(errno)), run.json_file,
                         "choose another file for --json-file");
    add_json(json_file_.get());
    return {};
  }

  void add_json(int fd) {
    json_sinks_.push_back(std::make_unique<FdSink>(fd));
    json_.push_back(std::make_unique<JsonLines>(*json_sinks_.back()));
    stream_.add(*json_.back());
  }

  Result<void> open_junit(const RunCommand& run) {
    if (run.junit.empty()) return {};
    auto created = JunitReport::create({run.junit, run.flaky == "fail"});
    if (!created) return created.error();
    junit_ = std::move(*created);
    stream_.add(*junit_);
    return {};
  }

  EventStream stream_;
  std::unique_ptr<FdSink> terminal_sink_;
  std::vector<std::unique_ptr<FdSink>> json_sinks_;
  std::unique_ptr<TerminalReport> terminal_;
  std::unique_ptr<HistoryRecorder> recorder_;
  UniqueFd json_file_;
  std::vector<std::unique_ptr<JsonLines>> json_;
  std::unique_ptr<JunitReport> junit_;
};

ExitCode exit_code_for(const SessionEnded& ended, FlakyResult flaky) {
  if (ended.failed > 0 || ended.not_run > 0) return ExitCode::test_failed;
  if (ended.flaky == 0 || flaky == FlakyResult::pass) return ExitCode::success;
  return flaky == FlakyResult::fail ? ExitCode::test_failed : ExitCode::flaky_only;
}

Result<void> remember(Store* store, const Target& target, const Project& project) {
  if (!store) return {};
  TargetRecord record{target.name, target.framework, target.path, target.argv};
  const auto relative =
      std::filesystem::path(target.path).lexically_relative(project.root).string();
  if (!relative.empty() && !relative.starts_with("..")) record.path = relative;
  return store->remember_target(record);
}

SessionStarted session_of(const SelectedTests& tests, const std::vector<PlannedTest>& plan,
                          const SessionPolicy& policy, const RunCommand& run, const Words& words,
                          Surroundings surroundings, size_t jobs) {
  SessionStarted session;
  session.at = std::chrono::system_clock::now();
  session.command_line = "unflake run " + shell_join(words.options);
  if (words.has_command) session.command_line += " -- " + shell_join(words.command);
  session.surroundings = std::move(surroundings);
  session.target = tests.target.name;
  for (const PlannedTest& planned : plan) session.tests.push_back(planned.test);
  session.repeat = policy.repeat;
  session.retries = run.retries.value_or(0);
  for (const PlannedTest& planned : plan)
    session.retries = std::max(session.retries, planned.retries);
  session.until_fail = policy.until_fail;
  session.duration = policy.duration;
  session.seed = policy.shuffle_seed;
  session.jobs = jobs;
  return session;
}

class RunSession {
 public:
  RunSession(RunCommand& run, const Words& words)
      : run_(run), words_(words), project_(find_project()) {}

  Result<int> operator()() {
    if (run_.quiet && run_.verbose) return usage_error("--quiet and --verbose exclude each other");
    auto config =
        load_config(run_.config.empty() ? project_.path("config.toml") : run_.config, run_.profile);
    if (!config) return config.error();
    config_ = std::move(*config);
    auto executor = LocalExecutor::create(local_options(), interrupts_);
    if (!executor) return executor.error();
    if (!run_.no_history) {
      if (run_.history.path.empty()) make_folder(project_);
      auto store = open_sqlite_store(run_.history.file(project_));
      if (!store) return store.error();
      store_ = std::move(*store);
    }
    auto tests = select_tests(run_.target, words_, config_.settings.target.value_or(""), project_,
                              store_.get(), **executor);
    if (interrupts_.stop_signal() != 0) return stopped();
    if (!tests) return tests.error();
    return run(*tests, **executor);
  }

 private:
  LocalOptions local_options() const {
    LocalOptions options;
    options.jobs = run_.jobs.value_or(config_.settings.jobs.value_or(1));
    options.grace = run_.grace.value_or(config_.settings.grace.value_or(options.grace));
    options.limits.head = options.limits.tail = run_.max_output_kib * 1024 / 2;
    options.core_dumps = run_.core_dumps;
    return options;
  }

  Result<int> run(const SelectedTests& tests, LocalExecutor& executor) {
    if (const auto remembered = remember(store_.get(), tests.target, project_); !remembered)
      return remembered.error();
    Listeners listeners;
    if (const auto opened = listeners.open(run_, store_.get(), executor); !opened)
      return opened.error();
    const SessionPolicy policy = policy_of(run_, can_be_live(terminal_of(run_)));
    const auto plan = plan_tests(tests, run_, config_);
    listeners.stream().emit(session_of(tests, plan, policy, run_, words_,
                                       survey(project_, executor), executor.slots()));
    if (tests.left_out > 0)
      listeners.stream().emit(Note{Note::Level::info,
                                   fmt::format("{} disabled tests are left out", tests.left_out),
                                   "--include-disabled runs them too"});
    const auto ended = run_session(plan, policy, executor, listeners.stream());
    if (!ended) return ended.error();
    if (const auto complaint = listeners.complaint()) return *complaint;
    if (ended->interrupted) return stopped();
    return static_cast<int>(exit_code_for(*ended, flaky_result()));
  }

  FlakyResult flaky_result() const {
    if (run_.flaky) return *flaky_result_from(*run_.flaky);
    return config_.settings.flaky.value_or(FlakyResult::tell);
  }

  int stopped() const {
    return static_cast<int>(ExitCode::signal_offset) + interrupts_.stop_signal();
  }

  RunCommand& run_;
  const Words& words_;
  const Project project_;
  Config config_;
  Interrupts interrupts_;
  std::unique_ptr<Store> store_;
};

}  // namespace

int run_command(const Words& words) {
  RunCommand run;
  CommandLine line("run", help);
  add_options(line.app(), run);
  if (const auto done = line.parse(words)) return *done;
  const auto code = RunSession(run, words)();
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
