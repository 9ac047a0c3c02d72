#include "search/schedule/explore.h"
#include "cli/commands.h"
#include "cli/schedule_search.h"
#include "report/search_text.h"
#include "util/text.h"

namespace unflake {
namespace {

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

}  // namespace unflake
