
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <filesystem>

#include "app/gatekeeper.h"
#include "app/listeners.h"
#include "app/project.h"
#include "app/repro_file.h"
#include "cli/rerun_failed.h"
#include "report/layout.h"
#include "run/local_executor.h"
#include "search/session/session.h"
#include "stats/rates.h"
#include "store/store.h"
#include "store/values.h"
#include "suite/program.h"
#include "util/text.h"

namespace unflake {
namespace {

// Too full even for an empty database.
bool is_disk_full(const std::string& path) {
  constexpr uint64_t least_room = 256 * 1024;
  struct statvfs disk {};
  std::filesystem::path folder = std::filesystem::path(absolute_path(path)).parent_path();
  std::error_code failed;
  while (!std::filesystem::exists(folder, failed) && folder.has_relative_path())
    folder = folder.parent_path();
  if (::statvfs(folder.c_str(), &disk) != 0) return false;
  const bool no_files_left = disk.f_files > 0 && disk.f_favail == 0;
  return no_files_left || disk.f_bavail * disk.f_frsize < least_room;
}

constexpr const char* run_help =
    R"(Runs tests, each alone in a process of its own, and remembers every run.

  unflake run ./server_test                        every test once
  unflake run ./server_test 'Server.*' -n 100      100 runs of each that matches
  unflake run ./server_test -E 'tag(net) and not name(*Live*)' --exclude '*Slow*'
  unflake run ./server_test --until-fail           again and again until it fails
  unflake run --rerun-failed                       what failed in the last session
  unflake run build --retries 2 --junit out.xml    a CTest build folder, failures tried again
  unflake run -- ./script.sh --fast                any command; its exit status decides
  unflake run ./server_test Server.Accepts --enforce FIX    with the order that `unflake repair` found
  unflake run build --ci --changed-since origin/main    the gate of a build; see docs/guide.md

Exit code 0: all passed; 1: a test failed in all of its runs; 2: bad usage; 3: nothing failed for
good, but a test is flaky (see --flaky); 4: unflake itself failed; 128 + N: stopped by signal N.)";

// How the command lines of its sessions begin, by which the history tells them from others.
const std::string command_name = "unflake run ";

ExitCode exit_code_for(const SessionEnded& ended, FlakyResult flaky) {
  if (ended.not_run > 0) return ExitCode::test_failed;
  if (ended.gate) return gate_exit_code(*ended.gate, flaky);
  if (ended.failed > 0) return ExitCode::test_failed;
  if (ended.flaky == 0 || flaky == FlakyResult::pass) return ExitCode::success;
  return flaky == FlakyResult::fail ? ExitCode::test_failed : ExitCode::flaky_only;
}

struct ChangedFound {
  int fresh = 0, changed = 0, undecided = 0;
  int all() const { return fresh + changed + undecided; }
};

std::string text_of(const ChangedFound& found, int runs, const std::string& revision) {
  if (found.all() == 0) return fmt::format("no test is new or changed since {}", revision);
  std::vector<std::string> parts;
  if (found.fresh > 0) parts.push_back(fmt::format("{} new", found.fresh));
  if (found.changed > 0) parts.push_back(fmt::format("{} changed", found.changed));
  if (found.undecided > 0)
    parts.push_back(fmt::format("{} that may be (the suite does not tell where it is written)",
                                found.undecided));
  return fmt::format(
      "{} since {}: {}, {} each; 0 failures of {} prove a failure rate below {} at "
      "95 % confidence",
      counted(found.all(), "test"), printable(revision), join(parts, ", "), counted(runs, "run"),
      runs, percent(upper_bound_zero_failures(runs)));
}

// History does not know a test that is new; one that it does not know may be as old as its lines.
Result<bool> is_new(const TestId& test, Store* store) {
  if (!store) return false;
  const auto known = store->summarise_test(test);
  if (!known) return known.error();
  return !known->has_value();
}

// Makes the changed tests, and those that may have changed, run `runs` times; without retries,
// which these runs make unnecessary. Says which, and what it proves when they pass.
Result<std::string> repeat_what_changed(std::vector<PlannedTest>& plan, const ChangedTests& tests,
                                        int runs, const std::string& revision, Store* store) {
  ChangedFound found;
  for (PlannedTest& planned : plan) {
    const bool undecided = tests.undecided.contains(planned.test->id);
    const bool changed = tests.changed.contains(planned.test->id);
    if (planned.role != PlannedTest::Role::test || (!undecided && !changed)) continue;
    const auto fresh = is_new(planned.test->id, store);
    if (!fresh) return fresh.error();
    ++(*fresh ? found.fresh : changed ? found.changed : found.undecided);
    planned.repeat = runs;
    planned.retries = 0;
  }
  return text_of(found, runs, revision);
}

class RunSession {
 public:
  RunSession(const RunCommand& run, const Words& words, const Project& project)
      : run_(run), words_(words), project_(project) {}

  Result<int> operator()() {
    if (run_.quiet && run_.verbose)
      return usage_error("--quiet and --verbose cannot be used together");
    if (!run_.enforced.empty() && run_.ci)
      return usage_error("--enforce is not for a build's gate", "--enforce",
                         "leave out --ci: a gate judges tests as they are");
    if (run_.quarantine_new && !run_.ci)
      return usage_error("--quarantine-new needs --ci", "", "add --ci");
    if (!run_.changed_since.empty() && (run_.duration || run_.until_fail))
      return usage_error(
          "--changed-since says how often tests run, as --duration and --until-fail do", "",
          "choose one of them");
    auto config = run_.configuration.load(project_);
    if (!config) return config.error();
    config_ = std::move(*config);
    auto executor = LocalExecutor::create(local_options(), interrupts_);
    if (!executor) return executor.error();
    if (auto opened = open_history(); !opened) return opened.error();
    const auto tests = select(**executor);
    if (interrupts_.stop_signal() != 0) return exit_code_of_signal(interrupts_.stop_signal());
    if (!tests) return tests.error();
    if (tests->selected.empty()) return run_nothing(*tests, **executor);
    if (auto remembered = remember(*tests); !remembered) return remembered.error();
    return run(*tests, **executor);
  }

 private:
  LocalOptions local_options() const {
    LocalOptions options;
    options.jobs = run_.jobs.value_or(config_.settings.jobs.value_or(1));
    options.grace = run_.grace.value_or(config_.settings.grace.value_or(options.grace));
    options.limits.head = options.limits.tail = run_.max_output_kib * 1024 / 2;
    options.core_dumps = run_.core_dumps;
    options.project_code = config_.code.rules(project_.root);
    options.crash_places = run_.crash_places.value_or(config_.settings.crash_places.value_or(true));
    return options;
  }

  // Before anything runs: whoever wants a history learns at once that there is none. A full disk
  // is not a reason not to run, neither at the start nor later.
  Result<void> open_history() {
    if (run_.history.no_history) return {};
    const StoreAddress address = run_.history.address(project_, config_);
    if (address.url == project_.path("history.db")) make_folder(project_);
    const auto opened = try_to_open(address);
    if (opened || (!is_postgres(address) && is_disk_full(address.url))) return {};
    return opened.error();
  }

  Result<Store*> try_to_open(const StoreAddress& address) {
    auto store = open_store(address);
    if (!store) return store.error();
    store_ = std::move(*store);
    return store_.get();
  }

  HistoryRecorder::OpenStore store_for_recorder() {
    if (run_.history.no_history) return nullptr;
    return [this, address = run_.history.address(project_, config_)]() -> Result<Store*> {
      return store_ ? store_.get() : try_to_open(address);
    };
  }

  FindTarget find_target() const {
    if (!store_) return find_target_in(run_.history.address(project_, config_));
    return [this](const std::string& name) { return store_->find_target(name); };
  }

  Result<SelectedTests> select(LocalExecutor& executor) {
    if (!run_.rerun_failed)
      return select_tests(run_.target, words_, config_.settings.target.value_or(""), project_,
                          find_target(), executor);
    auto rerun = select_failed(run_.target, words_, sessions_in_question(executor),
                               ask_last_failures(), project_, find_target(), executor);
    if (!rerun) return rerun.error();
    notes_.push_back({Note::Level::info, rerun->from, ""});
    for (const TestId& id : rerun->gone)
      notes_.push_back({Note::Level::warning,
                        fmt::format("{} failed, and is no longer there", to_string(id)), ""});
    return std::move(rerun->tests);
  }

  // In a history that many machines share, those of this build count, or else of this machine.
  SessionQuestion sessions_in_question(LocalExecutor& executor) const {
    SessionQuestion question{command_name};
    if (!is_postgres(run_.history.address(project_, config_))) return question;
    const Surroundings here = survey(project_, executor);
    (here.build.empty() ? question.machine : question.build) =
        here.build.empty() ? here.machine : here.build;
    return question;
  }

  AskLastFailures ask_last_failures() const {
    return [this](const SessionQuestion& question) -> Result<std::optional<LastFailures>> {
      if (store_) return store_->last_failures(question);
      auto store = open_store_to_read(run_.history.address(project_, config_));
      if (!store) return store.error();
      return (*store)->last_failures(question);
    };
  }

  // Whoever reads the results finds them, but empty.
  Result<int> run_nothing(const SelectedTests& tests, LocalExecutor& executor) {
    Listeners listeners;
    auto opened = listeners.open(run_, flaky_result(), nullptr, executor, interrupts_);
    if (!opened) return opened.error();
    const SessionPolicy policy = policy_of(run_, config_, false);
    return finish(run_all(tests, {}, policy, executor, listeners.stream(),
                          session_started(tests, {}, policy, executor)),
                  listeners);
  }

  Result<void> remember(const SelectedTests& tests) {
    if (!store_) return {};
    return store_->remember_target(record_of(tests.target, *tests.selected.front(), project_));
  }

  Result<int> run(const SelectedTests& tests, LocalExecutor& executor) {
    auto plan = plan_tests(tests, run_, config_);
    const auto repeated = repeat_changed(plan, tests, executor);
    if (!repeated) return repeated.error();
    const auto quarantine = run_.ci ? load_quarantine(run_.quarantine.file(project_))
                                    : Result<Quarantine>(Quarantine());
    if (!quarantine) return quarantine.error();
    if (run_.quarantine_new) make_folder(project_);
    Enforcement enforcement;
    for (const std::string& file : run_.enforced)
      if (auto added =
              enforcement.add(project_, file, config_.code.rules(project_.root), plan, executor);
          !added)
        return added.error();
    for (const Note& note : enforcement.before()) notes_.push_back(note);
    Listeners listeners;
    auto opened = listeners.open(run_, flaky_result(), store_for_recorder(), executor, interrupts_);
    if (!opened) return opened.error();
    listeners.stream().add(enforcement);
    const SessionPolicy policy = policy_of(run_, config_, can_be_live(terminal_of(run_)));
    SessionStarted started = session_started(tests, plan, policy, executor);
    started.why_repeated = *repeated;
    if (!run_.ci) {
      auto ended = run_all(tests, plan, policy, executor, listeners.stream(), started);
      for (const Note& note : enforcement.after()) listeners.stream().emit(note);
      return finish(ended, listeners);
    }
    EventStream gated;
    Gatekeeper gatekeeper(Gate(*quarantine, day_of(started.at)), gate_options(tests, started.at),
                          store_.get(), listeners.stream());
    gated.add(gatekeeper);
    auto ended = run_all(tests, plan, policy, executor, gated, started);
    if (ended) ended->gate = gatekeeper.counts();
    return finish(ended, listeners);
  }

  Result<SessionEnded> run_all(const SelectedTests& tests, const std::vector<PlannedTest>& plan,
                               const SessionPolicy& policy, LocalExecutor& executor,
                               EventStream& stream, const SessionStarted& started) const {
    stream.emit(started);
    for (const Note& note : notes_) stream.emit(note);
    for (const Error& part : tests.unmatched)
      stream.emit(Note{Note::Level::warning, part.what, part.next});
    tell_left_out(tests, stream);
    return run_session(plan, policy, executor, stream);
  }

  Result<int> finish(const Result<SessionEnded>& ended, const Listeners& listeners) const {
    if (!ended) return ended.error();
    if (const auto complaint = listeners.complaint()) return *complaint;
    if (ended->interrupted) return exit_code_of_signal(interrupts_.stop_signal());
    return static_cast<int>(exit_code_for(*ended, flaky_result()));
  }

  // Says which and why.
  Result<std::string> repeat_changed(std::vector<PlannedTest>& plan, const SelectedTests& tests,
                                     Launcher& launcher) const {
    if (run_.changed_since.empty()) return std::string();
    const auto changes = changes_since(run_.changed_since, project_, launcher);
    if (!changes) return changes.error();
    const int runs = std::max(changed_runs_of(run_, config_), run_.repeat.value_or(1));
    return repeat_what_changed(plan, changed_tests(tests.all, *changes), runs, run_.changed_since,
                               store_.get());
  }

  GatekeeperOptions gate_options(const SelectedTests& tests, TimePoint now) const {
    GatekeeperOptions options = gatekeeper_options(config_.ci, run_.quarantine.file(project_), now);
    options.quarantine_new = run_.quarantine_new;
    options.project_root = project_.root;
    if (tests.target.framework == Framework::command) return options;
    options.listed.emplace();
    for (const auto& test : tests.all) options.listed->push_back(test->id.name);
    return options;
  }

  SessionStarted session_started(const SelectedTests& tests, const std::vector<PlannedTest>& plan,
                                 const SessionPolicy& policy, LocalExecutor& executor) const {
    SessionStarted session;
    session.at = std::chrono::system_clock::now();
    session.command_line = command_line_of("run", words_);
    session.surroundings = survey(project_, executor);
    if (std::string& build = session.surroundings.build; build.empty() && !run_.ci)
      build = std::string(local_build) + make_session_uuid();
    session.target = tests.target.name;
    for (const PlannedTest& planned : plan) {
      session.tests.push_back(planned.test);
      session.retries = std::max(session.retries, planned.retries);
      if (planned.repeat.value_or(1) > 1) session.repeated.insert(planned.test->id);
    }
    session.repeat = policy.repeat;
    session.until_fail = policy.until_fail;
    session.duration = policy.duration;
    session.seed = policy.shuffle_seed;
    session.jobs = executor.slots();
    return session;
  }

  static void tell_left_out(const SelectedTests& tests, EventStream& stream) {
    if (tests.left_out == 0) return;
    const bool one = tests.left_out == 1;
    stream.emit(
        Note{Note::Level::info,
             fmt::format("{} disabled test{} left out", tests.left_out, one ? " is" : "s are"),
             fmt::format("--include-disabled runs {} too", one ? "it" : "them")});
  }

  FlakyResult flaky_result() const {
    if (run_.ci) return ci_flaky_result(run_.flaky, config_);
    if (run_.flaky) return *flaky_result_from(*run_.flaky);
    return config_.settings.flaky.value_or(FlakyResult::tell);
  }

  const RunCommand& run_;
  const Words& words_;
  const Project& project_;
  Config config_;
  Interrupts interrupts_;
  std::unique_ptr<Store> store_;
  std::vector<Note> notes_;  // for the beginning of the session
};

}  // namespace

int run_command(const Words& words) {
  RunCommand run;
  CommandLine line("run", run_help);
  add_options(line, run);
  if (const auto done = line.parse(words)) return *done;
  const auto project = find_project();
  if (!project) return report_error(project.error());
  const auto code = RunSession(run, words, *project)();
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
