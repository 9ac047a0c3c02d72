#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "app/agent_command.h"
#include "app/listeners.h"
#include "app/options.h"
#include "cli/commands.h"
#include "report/search_text.h"
#include "search/schedule/explore.h"
#include "search/schedule/races.h"
#include "util/text.h"

namespace unflake {
namespace {

// What every command takes that runs one test under many schedules.
struct ScheduleSearchOptions {
  OneTestOptions one;
  std::optional<Duration> budget;
  uint64_t seed = 1;
  bool json = false;
};

// Runs such a search: finds its test, keeps the history and shows how it goes on.
class ScheduleSearchCommand {
 public:
  ScheduleSearchCommand(std::string name, ScheduleSearchOptions& command)
      : name_(std::move(name)),
        command_(command),
        sink_(STDOUT_FILENO),
        progress_(sink_, wants_colour(command.one.colour, STDOUT_FILENO),
                  can_be_live(STDOUT_FILENO)) {
    if (!command.json) events_.add(progress_);
  }

  // `options` are the search's own, of which this sets what all searches have. `search` makes the
  // report, and `tell` prints it and gives the exit code.
  template <class Options, class Search, class Tell>
  Result<int> operator()(const Words& words, Options options, Search search, Tell tell) {
    if (auto ready = prepare(words, options); !ready) return ready.error();
    TrialRunner runner(one_->executor(), one_->shared_test(), one_->events());
    runner.teller().begin(name_);
    const auto report = search(runner, options);
    if (!report) return report.error();
    Page page;
    const ExitCode code = tell(page, *report);
    if (const int failed = page.write_out(); failed != 0) return failed;
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    return static_cast<int>(code);
  }

 private:
  template <class Options>
  Result<void> prepare(const Words& words, Options& options) {
    auto off = command_.one.groups_off();
    if (!off) return off.error();
    auto one = OneTest::find(command_.one, words);
    if (!one) return one.error();
    one_ = std::move(*one);
    options.plan.groups_off = std::move(*off);
    options.plan.system_calls = command_.one.system_calls;
    options.plan.extra_functions = one_->functions();
    options.seed = command_.seed;
    options.limits.budget = command_.budget.value_or(options.limits.budget);
    options.limits.timeout = one_->timeout();
    if (auto done = one_->set_up(); !done) return done.error();
    history_.open(command_.one.history, *one_, command_line_of(name_, words),
                  [this](const Note& note) { events_.emit(note); });
    one_->events().add(events_);
    return {};
  }

  const std::string name_;
  ScheduleSearchOptions& command_;
  FdSink sink_;
  SearchReport progress_;
  EventStream events_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
};

constexpr const char* explore_help =
    R"(Asks whether a test is sound: runs it under many schedules, one thread at a time, with a clock of
its own, and looks for an order of its threads under which it fails.

  unflake explore ./server_test Server.Accepts                     until nothing new is seen
  unflake explore ./server_test Server.Accepts --budget 10m        for longer
  unflake explore ./server_test Server.Accepts --stall 1s          threads may be this late
  unflake explore ./server_test Server.Accepts --sampler pos       one way to choose who goes on

Threads are exchanged at calls first, then at accesses to memory that several of them use. Small
tests are run in all schedules that there are, or in all with few preemptions. A failure counts when
the same schedule gives it again; then it is made small, and said in words.

Exit code 0: a schedule was found under which the test fails; 1: none was, or the test cannot be
controlled (it says why); 2: bad usage; 4: unflake itself failed; 128 + N: stopped by signal N.)";

struct ExploreCommand : ScheduleSearchOptions {
  std::optional<Duration> stall;
  std::vector<std::string> samplers;
  int jobs = 1;
};

Result<std::vector<Sampler>> chosen_samplers(const ExploreCommand& command) {
  std::vector<Sampler> chosen;
  for (const std::string& name : command.samplers) {
    const auto sampler = sampler_from(name);
    if (!sampler || *sampler == Sampler::stay)
      return usage_error("there is no sampler " + shell_quote(name), "--sampler",
                         "take one or more of surw, pos, pct, random");
    chosen.push_back(*sampler);
  }
  return chosen;
}

Result<int> run(ExploreCommand& command, const Words& words) {
  ExploreOptions options;
  auto samplers = chosen_samplers(command);
  if (!samplers) return samplers.error();
  options.samplers = std::move(*samplers);
  options.longest_stall = command.stall.value_or(options.longest_stall);
  command.one.slots = static_cast<size_t>(command.jobs);
  return ScheduleSearchCommand("explore", command)(
      words, options, explore, [&](Page& page, const ExploreReport& report) {
        page.print("{}", command.json ? explore_json(report)
                                      : explore_text(report, style_for(command.one.colour)));
        const bool is_found = report.found && report.found->came_back > 0;
        return is_found ? ExitCode::success : ExitCode::test_failed;
      });
}

}  // namespace

int explore_command(const Words& words) {
  ExploreCommand command;
  CommandLine line("explore", explore_help);
  command.one.add_to(line);
  line.option("--budget", command.budget, "for everything [1m]");
  line.option("--sampler", command.samplers,
              "one or more [all, in turn]:\nsurw: uniform over the orders of some accesses\n"
              "pos: random ranks, drawn anew where two conflict\npct: random priorities that fall "
              "at random points\nrandom: any thread, all alike")
      .separated_by(',')
      .one_at_a_time();
  line.option("--seed", command.seed, "for what is random");
  line.option("--stall", command.stall,
              "how late a thread that could go on may be while time passes, at most [100ms]");
  line.option("--jobs", command.jobs, "schedules that are run at once [1]").between(1, 1024);
  line.flag("--json", command.json, "JSON instead of text");
  if (const auto done = line.parse(words)) return *done;
  const auto code = run(command, words);
  return code ? *code : report_error(code.error());
}

namespace {

constexpr const char* races_help =
    R"(Lists the data races of a test, with both stacks: two threads touch the same memory, at least one of
them writes, and nothing orders the two. The program need not be built for it.

  unflake races ./server_test Server.Accepts                       20 runs, each under its own schedule
  unflake races ./server_test Server.Accepts --runs 100            more schedules, which may show more
  unflake races ./server_test Server.Accepts --json                for programs

Instructions of project code that touch memory of several threads are watched; threads run one at a
time, and locks, creation and join, semaphores, barriers, descriptors and atomics order what they do.
Whether a race can change the outcome is not said: `unflake explore` looks for that.

Exit code 0: there are races; 1: none was seen, or the test cannot be controlled (it says why);
2: bad usage; 4: unflake itself failed; 128 + N: stopped by signal N.)";

struct RacesCommand : ScheduleSearchOptions {
  std::optional<uint64_t> runs;
};

Result<int> run(RacesCommand& command, const Words& words) {
  RaceOptions options;
  options.most_runs = command.runs.value_or(options.most_runs);
  return ScheduleSearchCommand("races", command)(
      words, options, look_for_races, [&](Page& page, const RaceReport& report) {
        page.print("{}", command.json ? races_json(report)
                                      : races_text(report, style_for(command.one.colour)));
        return report.races.empty() ? ExitCode::test_failed : ExitCode::success;
      });
}

}  // namespace

int races_command(const Words& words) {
  RacesCommand command;
  CommandLine line("races", races_help);
  command.one.add_to(line);
  line.option("--runs", command.runs, "schedules to look at [20]").between(1, 10000);
  line.option("--budget", command.budget, "for everything [1m]");
  line.option("--seed", command.seed, "for what is random");
  line.flag("--json", command.json, "JSON instead of text");
  if (const auto done = line.parse(words)) return *done;
  const auto code = run(command, words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
