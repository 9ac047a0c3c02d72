#include <unistd.h>

#include <algorithm>

#include "app/agent_command.h"
#include "app/command_line.h"
#include "app/listeners.h"
#include "cli/commands.h"
#include "report/explore_text.h"
#include "report/search_text.h"
#include "search/schedule/explore.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* help =
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

struct ExploreCommand {
  OneTestOptions one;
  std::optional<Duration> budget, stall;
  std::vector<std::string> samplers;
  uint64_t seed = 1;
  int jobs = 1;
  bool json = false;
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

class ExploreTest {
 public:
  explicit ExploreTest(ExploreCommand& command)
      : command_(command),
        sink_(STDOUT_FILENO),
        progress_(sink_, wants_colour(command.one.colour, STDOUT_FILENO),
                  can_be_live(STDOUT_FILENO)) {
    if (!command.json) events_.add(progress_);
  }

  Result<int> operator()(const Words& words) {
    auto options = explore_options();
    if (!options) return options.error();
    command_.one.slots = static_cast<size_t>(command_.jobs);
    auto one = OneTest::find(command_.one, words);
    if (!one) return one.error();
    one_ = std::move(*one);
    options->plan.extra_functions = one_->functions();
    options->limits.timeout = one_->timeout();
    if (auto done = one_->set_up(); !done) return done.error();
    history_.open(command_.one.history, *one_, command_line_of("explore", words),
                  [this](const Note& note) { events_.emit(note); });
    one_->events().add(events_);
    TrialRunner runner(one_->executor(), one_->shared_test(), one_->events());
    runner.teller().begin("explore");
    const auto report = explore(runner, *options);
    if (!report) return report.error();
    return tell(*report);
  }

 private:
  Result<ExploreOptions> explore_options() const {
    ExploreOptions options;
    auto off = command_.one.groups_off();
    if (!off) return off.error();
    auto samplers = chosen_samplers(command_);
    if (!samplers) return samplers.error();
    options.plan.groups_off = std::move(*off);
    options.plan.system_calls = command_.one.system_calls;
    options.samplers = std::move(*samplers);
    options.seed = command_.seed;
    options.limits.budget = command_.budget.value_or(options.limits.budget);
    options.longest_stall = command_.stall.value_or(options.longest_stall);
    return options;
  }

  int tell(const ExploreReport& report) {
    Page page;
    page.print("{}", command_.json ? explore_json(report)
                                   : explore_text(report, style_for(command_.one.colour)));
    if (const int failed = page.write_out(); failed != 0) return failed;
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    const bool is_found = report.found && report.found->came_back > 0;
    return static_cast<int>(is_found ? ExitCode::success : ExitCode::test_failed);
  }

  ExploreCommand& command_;
  FdSink sink_;
  SearchReport progress_;
  EventStream events_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
};

}  // namespace

int explore_command(const Words& words) {
  ExploreCommand command;
  CommandLine line("explore", help);
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
  const auto code = ExploreTest(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
