#include "app/listeners.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "app/agent_command.h"
#include "app/repro_file.h"
#include "lifecycle/owners.h"
#include "report/layout.h"
#include "report/repair_text.h"
#include "store/values.h"
#include "util/files.h"
#include "util/result.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr Duration default_timeout = 10min;
constexpr Duration default_slow_after = 60s;
constexpr int default_changed_runs = 10;

int default_retries(const RunCommand& run, const Config& config) {
  const int otherwise = config.settings.retries.value_or(run.ci ? 1 : 0);
  return run.ci ? config.ci.retries.value_or(otherwise) : otherwise;
}

MassFailure mass_failure_of(const CiSettings& ci) {
  MassFailure bound;
  bound.tests = ci.mass_failure_tests.value_or(bound.tests);
  if (ci.mass_failure_percent) bound.share = *ci.mass_failure_percent / 100.0;
  return bound;
}

}  // namespace

void add_options(CommandLine& line, RunCommand& run) {
  run.target.add_to(line);
  line.flag("--include-disabled", run.target.include_disabled,
            "also run disabled and hidden tests");
  line.option(
          "--enforce", run.enforced,
          "keep the order of this file of `unflake repair`; such runs are trials; may be repeated")
      .takes("FIX")
      .one_at_a_time();
  line.flag("--rerun-failed", run.rerun_failed,
            "only the tests that failed in the last session, of TARGET when there is one");
  line.option("-n,--repeat", run.repeat, "runs of each test [1]").between(1, 1'000'000'000);
  line.flag("--until-fail", run.until_fail, "repeat each test until its first failure");
  line.option("--duration", run.duration, "repeat for this long");
  line.option("--retries", run.retries, "more tries for a test that fails [0; with --ci 1]")
      .between(0, 1'000'000)
      .from_environment("UNFLAKE_RETRIES");
  line.option("-j,--jobs", run.jobs, "runs at the same time [1]")
      .between(1, 1024)
      .from_environment("UNFLAKE_JOBS");
  line.flag("--shuffle", run.shuffle, "another order in every round");
  line.option("--seed", run.seed, "repeat a shuffled order (implies --shuffle)");
  line.option("--timeout", run.timeout, "for each run [the suite's own, else 10m]")
      .from_environment("UNFLAKE_TIMEOUT");
  line.option("--grace", run.grace, "between SIGTERM and SIGKILL at a time-out [2s]")
      .from_environment("UNFLAKE_GRACE");
  line.option("--slow-after", run.slow_after,
              "tell which test runs for longer than this, and again at its multiples; 0: never "
              "[1m]")
      .from_environment("UNFLAKE_SLOW_AFTER");
  line.flag("--fork-server,!--no-fork-server", run.fork_server,
            "fork each run from a process that waits just before main; see docs/guide.md");
  line.flag("--crash-places,!--no-crash-places", run.crash_places,
            "load a small library that tells where a test crashes [yes]");
  line.flag("--fail-fast", run.fail_fast, "start nothing after a failure that is not retried");
  line.option("--flaky", run.flaky,
              "exit code when tests are only flaky: tell (3), pass (0), fail (1)")
      .one_of({"tell", "pass", "fail"})
      .from_environment("UNFLAKE_FLAKY");
  line.flag("--ci", run.ci,
            "the gate of a build: one retry, known failures are those in quarantine");
  line.flag("--quarantine-new", run.quarantine_new,
            "with --ci: put new flaky failures into the quarantine, for a review");
  line.option("--changed-since", run.changed_since,
              "run tests that are new or changed since this revision more often")
      .from_environment("UNFLAKE_CHANGED_SINCE")
      .takes("REV");
  line.option("--changed-runs", run.changed_runs, "how often these run [10]")
      .between(1, 1'000'000)
      .from_environment("UNFLAKE_CHANGED_RUNS");
  run.quarantine.add_to(line);
  line.option("--slowest", run.slowest, "list this many of the slowest tests at the end")
      .between(1, 1'000'000);
  line.flag("--json", run.json, "events as JSON lines on standard output");
  line.option("--json-file", run.json_file, "events as JSON lines into a file").takes("FILE");
  line.option("--junit", run.junit, "write JUnit XML").takes("FILE");
  line.flag("-q,--quiet", run.quiet, "only failures and the summary");
  line.flag("-v,--verbose", run.verbose, "every run, with its output");
  line.flag("--full", run.full, "at a time-out, all frames of all threads");
  line.option("--color", run.colour, "auto, always or never").one_of({"auto", "always", "never"});
  run.history.add_recording_to(line);
  run.configuration.add_to(line);
  line.option("--max-output", run.max_output_kib,
              "KiB of a run's output that are kept, first and last half [1024]")
      .between(1, 1 << 20);
  line.flag("--core-dumps", run.core_dumps, "let crashing tests dump core");
}

int changed_runs_of(const RunCommand& run, const Config& config) {
  return run.changed_runs.value_or(config.ci.changed_runs.value_or(default_changed_runs));
}

SessionPolicy policy_of(const RunCommand& run, const Config& config, bool live) {
  SessionPolicy policy;
  if (run.ci) policy.retry = {false, mass_failure_of(config.ci)};
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
  const Duration slow_after =
      run.slow_after.value_or(config.settings.slow_after.value_or(default_slow_after));
  if (slow_after > Duration::zero()) policy.slow_after = slow_after;
  policy.slowest = run.slowest;
  return policy;
}

std::vector<PlannedTest> plan_tests(const SelectedTests& tests, const RunCommand& run,
                                    const Config& config) {
  std::vector<PlannedTest> plan = with_fixtures(tests.selected, tests.all);
  for (PlannedTest& planned : plan) {
    planned.retries = run.retries.value_or(default_retries(run, config));
    planned.timeout =
        planned.test->timeout.value_or(config.settings.timeout.value_or(default_timeout));
    planned.fork_server = config.settings.fork_server.value_or(false);
    for (const Override& change : config.overrides) {
      if (!glob_match(change.test, to_string(planned.test->id))) continue;
      if (change.retries && !run.retries) planned.retries = *change.retries;
      planned.timeout = change.timeout.value_or(planned.timeout);
      planned.fork_server = change.fork_server.value_or(planned.fork_server);
      if (!change.serial && !change.may_exit) continue;
      auto changed = std::make_shared<Test>(*planned.test);
      changed->serial = change.serial.value_or(changed->serial);
      changed->may_exit = change.may_exit.value_or(changed->may_exit);
      planned.test = std::move(changed);
    }
    planned.timeout = run.timeout.value_or(planned.timeout);
    planned.fork_server = run.fork_server.value_or(planned.fork_server);
  }
  return plan;
}

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

std::string command_line_of(const std::string& command, const Words& words) {
  std::string line = "unflake " + command + " " + shell_join(words.options);
  if (words.has_command)
    line += (words.options.empty() ? "-- " : " -- ") + shell_join(words.command);
  return line;
}

void TrialHistory::open(const StoreOptions& options, OneTest& one, std::string command_line,
                        Tell tell) {
  if (options.no_history) return;
  one.events().add(*this);
  SessionStarted session;
  session.at = std::chrono::system_clock::now();
  session.command_line = std::move(command_line);
  session.surroundings = survey(one.project(), one.launcher());
  if (std::string& build = session.surroundings.build; build.empty())
    build = std::string(local_build) + make_session_uuid();
  recorder_ = std::make_unique<HistoryRecorder>(
      [this, address = one.history(), project = one.project()] {
        return open_store(address, project);
      },
      std::move(tell));
  recorder_->record_trials_in(std::move(session));
}

void TrialHistory::open(const OneTestOptions& options, OneTest& one, std::string command_line) {
  open(options.history, one, std::move(command_line),
       [colour = options.colour](const Note& note) { warn({note}, colour); });
}

void TrialHistory::on(const Event& event) {
  if (recorder_) recorder_->on(event);
}

Result<Store*> TrialHistory::open_store(const StoreAddress& address, const Project& project) {
  if (address.url == project.path("history.db")) make_folder(project);
  auto store = unflake::open_store(address);
  if (!store) return store.error();
  store_ = std::move(*store);
  return store_.get();
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

Result<void> Enforcement::add(const Project& project, const std::string& file,
                              const ProjectCodeRules& rules, std::vector<PlannedTest>& tests,
                              Executor& executor) {
  const auto fix = load_fix(project, file);
  if (!fix) return fix.error();
  const auto planned = std::ranges::find_if(
      tests, [&](const PlannedTest& one) { return one.test->id == fix->repro.test; });
  if (planned == tests.end())
    return usage_error(
        fmt::format("{} is not among the tests that are to run", to_string(fix->repro.test)), file,
        "name the test that the fix is for");
  if (!planned->plan.interventions.empty())
    return usage_error(fmt::format("{} has two fixes", to_string(fix->repro.test)), file,
                       "enforce one of them");
  auto located = locate_plan(fix->repro, rules, [&](const Plan& plan) {
    Experiment experiment{planned->test, plan, planned->timeout};
    return executor.run(experiment);
  });
  if (!located) return located.error();
  if (auto gone = why_plan_is_gone(located->relocation, file)) return *gone;
  planned->plan = located->relocation.plan;
  planned->plan.id = "enforced: " + file;
  planned->fork_server = false;
  for (const Relocated& note : located->relocation.notes)
    before_.push_back({Note::Level::info, note.text, ""});
  std::vector<std::string> orders;
  for (const HandOver& one : fix->hand_overs) orders.push_back(hand_over_words(one));
  before_.push_back({Note::Level::warning,
                     fmt::format("{} runs with an order enforced: {}", to_string(fix->repro.test),
                                 join(orders, "; and ")),
                     "these runs are trials in the history: they say nothing about the test as it "
                     "is"});
  all_.push_back({fix->repro.test, file});
  return {};
}

void Enforcement::on(const Event& event) {
  const auto* run = std::get_if<RunEnded>(&event);
  if (run == nullptr || run->plan.interventions.empty()) return;
  for (Enforced& one : all_)
    if (one.test == run->test->id) count(one, *run);
}

void Enforcement::count(Enforced& enforced, const RunEnded& run) const {
  ++enforced.runs;
  if (!run.result.trace) return;
  const auto& states = run.result.trace->interventions;
  Duration waited{};
  for (size_t i = 0; i < run.plan.interventions.size() && i < states.size(); ++i) {
    if (run.plan.interventions[i].action != Intervention::Action::hold) continue;
    enforced.waits += states[i].fired;
    enforced.let_go += states[i].let_go;
    enforced.impossible += states[i].impossible;
    waited += states[i].added;
  }
  constexpr Duration no_wait = std::chrono::milliseconds(1);  // the probe itself takes some time
  enforced.waiting_runs += waited > no_wait;
  enforced.waited += waited;
}

std::vector<Note> Enforcement::after() const {
  std::vector<Note> notes;
  for (const Enforced& one : all_) {
    if (one.runs == 0) continue;
    const std::string average =
        format_duration(one.waited / static_cast<int64_t>(std::max<size_t>(1, one.waiting_runs)));
    std::string text =
        fmt::format("{} was enforced: the test had to wait in {} of {}, {} on average", one.file,
                    one.waiting_runs, counted(static_cast<long long>(one.runs), "run"), average);
    const bool in_vain = one.let_go + one.impossible > 0;
    if (in_vain)
      text +=
          fmt::format("; {} ended in vain ({} at the bound, {} because nobody could come first)",
                      counted(static_cast<long long>(one.let_go + one.impossible), "wait"),
                      one.let_go, one.impossible);
    notes.push_back({in_vain ? Note::Level::warning : Note::Level::info, text,
                     in_vain ? "the code has changed since: `unflake repair` looks again" : ""});
  }
  return notes;
}

}  // namespace unflake
