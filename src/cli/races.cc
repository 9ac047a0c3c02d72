#include "search/schedule/races.h"
#include "cli/commands.h"
#include "cli/schedule_search.h"
#include "report/search_text.h"

namespace unflake {
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
