#include <unistd.h>

#include "app/agent_command.h"
#include "app/command_line.h"
#include "app/listeners.h"
#include "cli/commands.h"
#include "report/explore_text.h"
#include "report/search_text.h"
#include "search/schedule/races.h"

namespace unflake {
namespace {

constexpr const char* help =
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

struct RacesCommand {
  OneTestOptions one;
  std::optional<Duration> budget;
  std::optional<uint64_t> runs;
  uint64_t seed = 1;
  bool json = false;
};

class RacesOfTest {
 public:
  explicit RacesOfTest(RacesCommand& command)
      : command_(command),
        sink_(STDOUT_FILENO),
        progress_(sink_, wants_colour(command.one.colour, STDOUT_FILENO),
                  can_be_live(STDOUT_FILENO)) {
    if (!command.json) events_.add(progress_);
  }

  Result<int> operator()(const Words& words) {
    auto options = race_options();
    if (!options) return options.error();
    auto one = OneTest::find(command_.one, words);
    if (!one) return one.error();
    one_ = std::move(*one);
    options->plan.extra_functions = one_->functions();
    options->limits.timeout = one_->timeout();
    if (auto done = one_->set_up(); !done) return done.error();
    history_.open(command_.one.history, *one_, command_line_of("races", words),
                  [this](const Note& note) { events_.emit(note); });
    one_->events().add(events_);
    TrialRunner runner(one_->executor(), one_->shared_test(), one_->events());
    runner.teller().begin("races");
    const auto report = look_for_races(runner, *options);
    if (!report) return report.error();
    return tell(*report);
  }

 private:
  Result<RaceOptions> race_options() const {
    RaceOptions options;
    auto off = command_.one.groups_off();
    if (!off) return off.error();
    options.plan.groups_off = std::move(*off);
    options.plan.system_calls = command_.one.system_calls;
    options.seed = command_.seed;
    options.limits.budget = command_.budget.value_or(options.limits.budget);
    options.most_runs = command_.runs.value_or(options.most_runs);
    return options;
  }

  int tell(const RaceReport& report) {
    Page page;
    page.print("{}", command_.json ? races_json(report)
                                   : races_text(report, style_for(command_.one.colour)));
    if (const int failed = page.write_out(); failed != 0) return failed;
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    return static_cast<int>(report.races.empty() ? ExitCode::test_failed : ExitCode::success);
  }

  RacesCommand& command_;
  FdSink sink_;
  SearchReport progress_;
  EventStream events_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
};

}  // namespace

int races_command(const Words& words) {
  RacesCommand command;
  CommandLine line("races", help);
  command.one.add_to(line);
  line.option("--runs", command.runs, "schedules to look at [20]").between(1, 10000);
  line.option("--budget", command.budget, "for everything [1m]");
  line.option("--seed", command.seed, "for what is random");
  line.flag("--json", command.json, "JSON instead of text");
  if (const auto done = line.parse(words)) return *done;
  const auto code = RacesOfTest(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
