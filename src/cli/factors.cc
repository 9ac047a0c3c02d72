#include <fmt/format.h>
#include <unistd.h>

#include <set>

#include "app/agent_command.h"
#include "app/listeners.h"
#include "app/options.h"
#include "app/repro_file.h"
#include "cli/commands.h"
#include "report/detect_text.h"
#include "report/search_text.h"
#include "search/detect/factor_search.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* factors_help =
    R"(Runs a test with one factor of its surroundings at a time other than usual, and names those that change
its outcome: address layout, environment size, locale, time zone, clock (leap day, month end, daylight
saving), umask, number of cores, CPU load, free disk, open files, temporary and working folder, a
parallel copy of the test, random and hash seed, network, uninitialised memory.

  unflake factors ./report_test Report.Totals             all factors, one after the other
  unflake factors ./report_test Report.Totals --only clock,umask
  unflake factors -- ./check.sh                           any command

A factor counts when fresh runs with it and without it differ by more than chance explains, corrected
for all that was tried. Each finding gets a repro file for `unflake replay`. What needs privileges that
are not there is told as not tried.

Exit code 0: a factor changes the outcome; 1: none was seen to; 2: bad usage; 4: unflake itself failed;
128 + N: stopped by signal N.)";

struct FactorsCommand {
  OneTestOptions one;
  std::optional<Duration> budget;
  std::vector<std::string> only;
  bool json = false, no_repro = false;
};

class FactorsOfTest {
 public:
  explicit FactorsOfTest(FactorsCommand& command)
      : command_(command),
        sink_(STDOUT_FILENO),
        progress_(sink_, wants_colour(command.one.colour, STDOUT_FILENO),
                  can_be_live(STDOUT_FILENO)) {}

  Result<int> operator()(const Words& words) {
    const FactorLevels levels = factor_levels(facts_of_machine());
    if (auto known = check_names(levels); !known) return known.error();
    auto one = OneTest::find(command_.one, words);
    if (!one) return one.error();
    one_ = std::move(*one);
    if (auto done = one_->set_up(); !done) return done.error();
    history_.open(command_.one, *one_, command_line_of("factors", words));
    if (!command_.json) one_->events().add(progress_);
    TrialRunner runner(one_->executor(), one_->shared_test(), one_->events(),
                       command_.budget.value_or(std::chrono::minutes(5)));
    FactorOptions options;
    options.timeout = one_->timeout();
    options.only = command_.only;
    const FactorReport report = look_for_factors(runner, one_->shared_test(), levels, options);
    if (runner.error()) return *runner.error();
    if (auto told = tell(report); !told) return told.error();
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    return static_cast<int>(report.findings.empty() ? ExitCode::test_failed : ExitCode::success);
  }

 private:
  Result<void> check_names(const FactorLevels& levels) const {
    std::set<std::string> names;
    for (const FactorLevel& level : levels.levels) names.insert(level.factor);
    for (const std::string& name : command_.only)
      if (!names.contains(name))
        return usage_error(fmt::format("there is no factor '{}'", printable(name)), "--only",
                           "choose from " + join({names.begin(), names.end()}, ", "));
    return {};
  }

  Result<void> tell(const FactorReport& report) {
    std::string text =
        command_.json ? factors_json(one_->test(), report)
                      : "\n" + factors_text(one_->test(), report, style_for(command_.one.colour));
    std::set<std::string> saved;
    for (const FactorFinding& finding : report.findings) {
      if (command_.no_repro || !saved.insert(finding.signature).second) continue;
      const auto file = save_repro(one_->project(), repro_of(finding, *one_));
      if (!file) return file.error();
      if (!command_.json) text += fmt::format("repro: {}\n", printable(file->path));
    }
    Page page;
    page.print("{}", text);
    (void)page.write_out();
    return {};
  }

  FactorsCommand& command_;
  FdSink sink_;
  SearchReport progress_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
};

}  // namespace

int factors_command(const Words& words) {
  FactorsCommand command;
  CommandLine line("factors", factors_help);
  command.one.target.add_to(line);
  line.option("--only", command.only, "these factors [all]").separated_by(',').one_at_a_time();
  line.option("--budget", command.budget, "for everything [5m]");
  line.option("--timeout", command.one.timeout, "for each run [the suite's own, else 10m]");
  line.flag("--no-repro", command.no_repro, "write no repro files");
  line.flag("--json", command.json, "JSON instead of text");
  line.option("--color", command.one.colour, "auto, always or never")
      .one_of({"auto", "always", "never"});
  command.one.history.add_recording_to(line);
  command.one.configuration.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto code = FactorsOfTest(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
