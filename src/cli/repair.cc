#include <fmt/format.h>
#include <unistd.h>

#include "app/agent_command.h"
#include "app/listeners.h"
#include "app/proving.h"
#include "app/repro_file.h"
#include "cli/commands.h"
#include "cli/reproduce_parts.h"
#include "explain/explanation.h"
#include "report/detect_text.h"
#include "report/repair_text.h"
#include "report/search_text.h"
#include "search/repair/flakesync.h"
#include "search/repair/repair.h"
#include "search/reproduce/candidates.h"
#include "search/reproduce/strategy.h"
#include "util/files.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr const char* repair_help =
    R"(Finds what must wait for what so that a flaky test passes, and tries it in the running binary
before any source is touched: the order is enforced while the test runs under what made it fail, when
nobody is late, and under sampled schedules.

  unflake repair server_test_Server.Accepts-8c7b35ab     what `unflake reproduce` has written
  unflake repair ./server_test Server.Accepts            reproduces the failure first
  unflake repair FILE --method flakesync                 the published search alone, for comparison

Of what `unflake orders` and `factors` have written it tells what to reset or to set, and which cleaner
shows how; nothing is tried.

What held is written to .unflake/fixes/NAME.json, for `unflake run --enforce`. Then come source patches,
the best idiom first: each is rebuilt in a copy and proven as `unflake prove` does, and the first one
that repairs the failure is written to .unflake/patches/NAME.patch.

Exit code 0: a repair was found and held, or a patch was proven; 1: none was, or the failure did not
come (it says what was tried); 2: bad usage, or a site of the plan is gone; 4: unflake itself failed; 5: a test of how long
something takes, or a deadlock in the code: no wait in the test repairs it; 128 + N: stopped by signal
N, what was found until then is written.)";

struct RepairCommand {
  OneTestOptions one;
  std::string target, method = "short-cut";
  std::optional<Duration> budget, proof_budget;
  std::string build_command;
  std::string compile_commands;  // its folder
  bool no_patch = false;
  uint64_t seed = 1;
  bool json = false;
};

ObservedRun observed_run(const ExperimentResult& result) {
  return {result.trace ? *result.trace : Trace{}, result.outcome, result.process.thread_stacks};
}

SiteName line_of(const Moment& moment) {
  SiteName site;
  site.file = moment.place.file;
  site.line = moment.place.line;
  return site;
}

class Repairing {
 public:
  explicit Repairing(RepairCommand& command)
      : command_(command),
        sink_(STDOUT_FILENO),
        progress_(sink_, wants_colour(command.one.colour, STDOUT_FILENO),
                  can_be_live(STDOUT_FILENO)) {
    if (!command.json) events_.add(progress_);
    events_.add(code_notes_);
  }

  Result<int> operator()(const Words& words) {
    if (auto found = find_test(words); !found) return found.error();
    if (repro_ && repro_->is_plain()) return propose();
    history_.open(command_.one.history, *one_, command_line_of("repair", words),
                  [this](const Note& note) { events_.emit(note); });
    if (auto done = one_->set_up(); !done) return done.error();
    one_->events().add(events_);
    for (auto step : {&Repairing::reproduce_first, &Repairing::leave_control, &Repairing::locate,
                      &Repairing::search, &Repairing::patch, &Repairing::search_on_free_cores}) {
      if (auto done = (this->*step)(); !done) return done.error();
      if (one_->stop_signal() != 0 && report_.repairs.empty())
        return exit_code_of_signal(one_->stop_signal());
    }
    return tell();
  }

 private:
  // ---- The failure ----

  Result<void> find_test(const Words& words) {
    const auto project = find_project();
    if (!project) return project.error();
    const auto& named = command_.one.target.words;
    if (named.size() == 1 && !words.has_command)
      if (const auto path = find_repro(*project, named.front()); path && path->ends_with(".json"))
        return find_recorded(*project, *path);
    auto one = OneTest::find(command_.one, words);
    if (!one) return one.error();
    one_ = std::move(*one);
    return {};
  }

  Result<void> find_recorded(const Project& project, const std::string& path) {
    auto repro = load_repro(path);
    if (!repro) return repro.error();
    path_ = repro_path_ = path;
    repro_ = std::move(*repro);
    OneTestOptions options = command_.one;
    options.target.words.clear();
    auto one = find_recorded_test(project, *repro_, command_.target, options);
    if (!one) return one.error();
    one_ = std::move(*one);
    return {};
  }

  // No thread has to wait for another one: what was found by experiment is the advice.
  Result<int> propose() const {
    Page page;
    page.print("{}", command_.json ? plain_cause_json(*repro_) : plain_cause_text(*repro_));
    const int failed = page.write_out();
    return failed != 0 ? failed : static_cast<int>(ExitCode::test_failed);
  }

  Duration budget() const { return command_.budget.value_or(5min); }
  Duration left() const {
    const auto spent = std::chrono::duration_cast<Duration>(Clock::now() - began_);
    return std::max<Duration>(budget() - spent, 1s);
  }

  Result<HuntOptions> hunt_options() const {
    HuntOptions options;
    auto off = command_.one.groups_off();
    if (!off) return off.error();
    options.groups_off = std::move(*off);
    options.system_calls = command_.one.system_calls;
    options.seed = command_.seed;
    options.budget = left() / 2;
    options.timeout = one_->timeout();
    options.extra_functions = one_->functions();
    options.known_signatures = known_signatures(one_->test().id, one_->history());
    options.measure_lateness = machine_lateness;
    return options;
  }

  // Nothing: no plan was found.
  Result<std::optional<Repro>> hunt(const HuntOptions& options, bool schedules) {
    std::vector<const Strategy*> chosen;
    for (const Strategy& strategy : strategies())
      if (strategy.by_default && (schedules || strategy.search != search_schedules) &&
          (schedules || strategy.search != search_more_schedules))
        chosen.push_back(&strategy);
    Hunt hunt(one_->executor(), one_->shared_test(), options, one_->events());
    if (hunt.prepare()) unflake::search(hunt, chosen);
    if (hunt.runner().error()) return *hunt.runner().error();
    for (const Note& note : code_notes_.take()) events_.emit(note);
    if (hunt.found().empty()) return std::optional<Repro>();
    Repro repro = repro_of(hunt.found().front(), *one_, command_.seed);
    describe(repro, hunt.profile(), *one_);
    return std::optional(std::move(repro));
  }

  Result<void> reproduce_first() {
    if (repro_) return {};
    const auto options = hunt_options();
    if (!options) return options.error();
    auto found = hunt(*options, true);
    if (!found) return found.error();
    repro_ = std::move(*found);
    if (!repro_) return {};
    auto saved = save_repro(one_->project(), *repro_);
    if (!saved) return saved.error();
    repro_path_ = saved->path;
    return {};
  }

  // Under control the engine decides who goes on: a repair needs to know who must not be late.
  Result<void> leave_control() {
    if (!repro_ || !repro_->is_under_control()) return {};
    events_.emit(Note{Note::Level::info,
                      "the repro is under control: looking for the delay that does the same", ""});
    auto options = hunt_options();
    if (!options) return options.error();
    options->wanted.signature = repro_->signature;
    options->wanted.failure = repro_->failure;
    auto found = hunt(*options, false);
    if (!found) return found.error();
    if (!*found) return {};
    repro_ = std::move(**found);
    path_.clear();
    return {};
  }

  // What was found just now names places as they are; a file may be older than the program.
  Result<void> locate() {
    if (!repro_ || repro_->is_under_control()) return {};
    auto located = locate_plan(*one_, *repro_);
    if (one_->stop_signal() != 0) return {};
    if (!located) return located.error();
    located_ = std::move(*located);
    if (path_.empty()) return {};
    if (auto gone = why_plan_is_gone(located_.relocation, path_)) return *gone;
    repro_->plan = located_.relocation.plan;
    return {};
  }

  // ---- The repair ----

  FailingTest failing_test() const {
    FailingTest test;
    Plan plain = repro_->plan;
    plain.interventions.clear();
    const Trial with_plan{repro_->plan, repro_->conditions, "made late"};
    const Trial without{plain, {}, "without the plan"};
    test.failing = repro_->passes_under_plan ? without : with_plan;
    test.passing = repro_->passes_under_plan ? with_plan : without;
    test.is_same = [this](const Outcome& outcome) {
      return is_same_mistake(*repro_, outcome, located_.code);
    };
    test.by_itself = repro_->without_plan;
    test.timeout = repro_->timeout > Duration{} ? repro_->timeout : one_->timeout();
    test.lines = located_.code.lines;
    test.printed_at = line_of_printed_failure(repro_->failure, repro_->framework);
    return test;
  }

  std::vector<SiteName> compare(const ExperimentResult& passing, const ExperimentResult& failing) {
    const ObservedRun passed = observed_run(passing), failed = observed_run(failing);
    const Explanation explanation = explain(*repro_, &passed, &failed);
    if (!explanation.pair) return {};
    return {line_of(explanation.pair->second)};
  }

  Result<void> search() {
    report_.test = one_->test().id;
    report_.method = command_.method;
    if (!repro_) {
      report_.notes.push_back(
          "the failure did not come: `unflake reproduce` says what was covered");
      return {};
    }
    report_.signature = repro_->signature;
    report_.failure = repro_->failure;
    if (repro_->is_under_control()) {
      report_.notes.push_back("the failure comes under control only: no delay shows what is late");
      return {};
    }
    TrialRunner runner(one_->executor(), one_->shared_test(), one_->events(), left());
    RepairRuns runs(runner, failing_test());
    RepairOptions options;
    options.verification.seed = command_.seed;
    options.slack = repro_->slack;
    options.machine = repro_->machine_lateness.value_or(MachineLateness{});
    options.under_control = !has_left_control_;
    options.compare = [this](const ExperimentResult& passing, const ExperimentResult& failing) {
      return compare(passing, failing);
    };
    auto result = find(runs, options);
    if (!result) return result.error();
    RepairReport& found = *result;
    for (EnforcedRepair& repair : found.repairs)
      for (HandOver& one : repair.hand_overs) end_with_last_statement(one);
    found.test = report_.test;
    found.signature = report_.signature;
    found.failure = report_.failure;
    report_ = std::move(found);
    if (runner.error()) return *runner.error();
    return {};
  }

  // A line without code of its own, such as one that was inlined as a whole, was no step: what is
  // over at the next step is the last statement before it.
  void end_with_last_statement(HandOver& hand_over) const {
    CodeSpot& spot = hand_over.critical.spot;
    if (hand_over.over_at.line == 0 || !located_.code.source) return;
    const CodeView::Lines& source = located_.code.source(spot.file);
    for (int line = hand_over.over_at.line - 1; line > spot.line; --line) {
      if (static_cast<size_t>(line) > source.size()) return;
      const std::string_view text = trim(source[static_cast<size_t>(line) - 1]);
      if (text.find_first_not_of("{}();, ") == text.npos || text.starts_with("//")) continue;
      spot.line = line;
      return;
    }
  }

  Result<RepairReport> find(RepairRuns& runs, const RepairOptions& options) {
    const auto keep = [this](const EnforcedRepair& repair) { save(repair); };
    if (command_.method != "flakesync") return find_repair(runs, options, keep);
    auto hunting = hunt_options();
    if (!hunting) return hunting.error();
    hunting->wanted.signature = repro_->signature;
    hunting->wanted.failure = repro_->failure;
    Hunt hunt(one_->executor(), one_->shared_test(), *hunting, one_->events());
    if (!hunt.prepare() && hunt.runner().error()) return *hunt.runner().error();
    return find_repair_as_published(hunt, runs, options, keep);
  }

  // At once: what was found is worth having when the rest is cut short.
  void save(const EnforcedRepair& repair) {
    Fix fix{*repro_, repair.hand_overs, repair.runs};
    fix.repro.plan = repair.plan;
    fix.repro.passes_under_plan = true;
    fix.repro.conditions = {};
    fix.repro.with_plan = repair.runs.under_plan;
    fix.repro.strategy = "repair";
    fix.repro.slack.reset();
    fix.repro.doses.clear();
    describe_sites(fix.repro, located_.seen, located_.code);
    auto saved = save_fix(one_->project(), fix);
    if (saved)
      fix_path_ = path_from_here(*saved);
    else
      report_.notes.push_back(to_string(saved.error()));
  }

  // ---- The patch ----

  Result<void> patch() {
    if (command_.no_patch || !repro_ || stop_signal() != 0) return {};
    const std::string binary = recorded_target(one_->project(), *repro_, command_.target);
    auto request = patch_request(report_, *repro_, one_->project(), binary);
    if (!request) return {};
    request->compile_commands_folder = command_.compile_commands;
    if (!wanted_idioms_.empty()) request->idioms = wanted_idioms_;
    PatchingOptions options;
    options.repro = *repro_;
    options.repro_path = repro_path_;
    options.name = name_of_files();
    options.target = command_.target;
    options.build_command = command_.build_command;
    options.one = command_.one;
    options.budget = command_.proof_budget.value_or(options.budget);
    options.seed = command_.seed;
    const auto stopped = write_patches(report_, one_->project(), options, *request, events_,
                                       [this](const std::string& line) {
                                         events_.emit(SearchStep{"patch", line});
                                       });
    if (!stopped) return stopped.error();
    stopped_patching_ = *stopped;
    return {};
  }

  // An order that is kept under control may be none that a patch can keep, or that anybody would
  // write: on free cores another one may do.
  Result<void> search_on_free_cores() {
    const auto is_good = [](const TriedPatch& tried) {
      return tried.is_proven() && tried.patch.idiom != RepairIdiom::hand_over;
    };
    if (!report_.under_control || report_.repairs.empty() || report_.patches.empty() ||
        std::ranges::any_of(report_.patches, is_good) || stop_signal() != 0)
      return {};
    RepairReport first = std::exchange(report_, {});
    has_left_control_ = true;
    if (first.has_proven_patch())
      wanted_idioms_ = {RepairIdiom::join, RepairIdiom::notify, RepairIdiom::poll};
    events_.emit(SearchStep{
        "repair", first.has_proven_patch()
                      ? "only a hand-over keeps that order: looking for a better one on free cores"
                      : "no patch keeps that order: looking for another one on free cores"});
    const auto searched = search();
    const auto patched = searched ? patch() : searched;
    const int runs = first.runs + report_.runs;
    const Duration elapsed = first.elapsed + report_.elapsed;
    if (!report_.has_proven_patch()) {
      report_ = std::move(first);
      save(report_.repairs.front());
    }
    report_.runs = runs;
    report_.elapsed = elapsed;
    return patched;
  }

  std::string name_of_files() const {
    const std::string file = base_name(fix_path_.empty() ? repro_path_ : fix_path_);
    return file.substr(0, file.rfind(".json"));
  }

  int stop_signal() const {
    return one_->stop_signal() != 0 ? one_->stop_signal() : stopped_patching_;
  }

  Result<int> tell() {
    Page page;
    page.print("{}", command_.json ? repair_json(report_)
                                   : repair_text(report_, style_for(command_.one.colour)));
    if (!command_.json && !fix_path_.empty())
      page.print("\n  keep it:  unflake run --enforce {} {}\n", shell_quote(fix_path_),
                 shell_quote(to_string(one_->test().id)));
    if (const int failed = page.write_out(); failed != 0) return failed;
    if (stop_signal() != 0) return exit_code_of_signal(stop_signal());
    if (!report_.repairs.empty() || report_.has_proven_patch())
      return static_cast<int>(ExitCode::success);
    const bool is_other = report_.exact_timing || !report_.deadlock.empty();
    return static_cast<int>(is_other ? ExitCode::only_margin : ExitCode::test_failed);
  }

  using Clock = std::chrono::steady_clock;

  RepairCommand& command_;
  const Clock::time_point began_ = Clock::now();
  FdSink sink_;
  SearchReport progress_;
  CodeNotes code_notes_;
  EventStream events_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
  bool has_left_control_ = false;
  std::vector<RepairIdiom> wanted_idioms_;  // empty: all
  std::string path_;        // of the repro that is used; empty: it was found just now
  std::string repro_path_;  // of that, or of what was reproduced first
  std::string fix_path_;
  int stopped_patching_ = 0;
  std::optional<Repro> repro_;
  LocatedPlan located_;
  RepairReport report_;
};

}  // namespace

int repair_command(const Words& words) {
  RepairCommand command;
  CommandLine line("repair", repair_help);
  command.one.add_to(line);
  line.option("--method", command.method,
              "short-cut: from what the repro makes late; flakesync: the published search")
      .one_of({"short-cut", "flakesync"});
  line.option("--target", command.target,
              "with a repro: another executable or build folder with the test")
      .takes("PATH");
  line.option("--budget", command.budget, "for everything [5m]");
  line.option("--seed", command.seed, "for what is random");
  line.flag("--no-patch", command.no_patch, "find the order, and write no patch");
  line.option("--build", command.build_command,
              "how the program is built, in a copy of the sources [found for CMake, Meson, make]")
      .takes("COMMAND");
  line.option("--compile-commands", command.compile_commands,
              "the folder of compile_commands.json [found from the sources, else CMake is asked]")
      .takes("FOLDER");
  line.option("--proof-budget", command.proof_budget, "for the runs that prove one patch [10m]");
  line.flag("--json", command.json, "JSON instead of text");
  if (const auto done = line.parse(words)) return *done;
  const auto code = Repairing(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
