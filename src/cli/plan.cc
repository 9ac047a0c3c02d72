#include <fmt/format.h>

#include <algorithm>

#include "app/options.h"
#include "cli/commands.h"
#include "ingest/rates_file.h"
#include "report/detect_text.h"
#include "search/detect/rerun_scheduler.h"
#include "stats/rates.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* plan_help =
    R"(What would 5 minutes buy me? How many flaky tests plain reruns are expected to find in a given
time: rerunning everything alike, by the exact model, and run by run where it most likely shows
something, as `unflake detect` does, by simulation. Failure rates and run times come from the
history, or from a CSV file with the columns project,test,passes,failures,seconds.

  unflake plan                                   the project's own history
  unflake plan 'server_test:*' --time 5m         these tests, one time
  unflake plan --rates rates.csv --html curve.html --svg curve.svg

A test that has never failed counts as sound, so the numbers are what is known to be there to be
found, and no more.

Exit code 0: told; 1: nothing is known to be flaky; 2: bad usage; 4: unflake itself failed.)";

constexpr uint64_t most_runs = 1'000'000;
constexpr size_t most_tests = 1'000'000;

struct PlanCommand {
  StoreOptions history;
  ConfigOptions configuration;
  std::vector<std::string> patterns;
  std::string rates, svg, html;
  std::optional<Duration> time;
  uint64_t seed = 1;
  int simulations = 20;
  bool json = false;
};

Result<std::vector<RatedRuns>> rates_of_history(const PlanCommand& command) {
  const auto project = find_project();
  if (!project) return project.error();
  const auto config = command.configuration.load(*project);
  if (!config) return config.error();
  auto store = open_store_to_read(command.history.address(*project, *config));
  if (!store) return store.error();
  std::vector<RatedRuns> all;
  for (const std::string& pattern :
       command.patterns.empty() ? std::vector<std::string>{"*"} : command.patterns) {
    const auto tests = (*store)->summarise(pattern, most_tests);
    if (!tests) return tests.error();
    for (const TestSummary& test : *tests) {
      const bool has_passed = test.pass_durations.runs > 0;
      const Duration mean = has_passed ? test.pass_durations.mean : test.fail_durations.mean;
      if (test.passes + test.failures > 0)
        all.push_back({"", to_string(test.test), test.passes, test.failures,
                       std::max(0.0, std::chrono::duration<double>(mean).count())});
    }
  }
  if (all.empty())
    return usage_error("the history has no runs of such tests", "",
                       "run them with `unflake run` first, or give --rates FILE");
  return all;
}

// 1, 2, 5, 10 ... up to a thousand runs of everything.
std::vector<double> usual_times(double suite_seconds) {
  std::vector<double> times;
  for (double power = 1; power <= 100; power *= 10)
    for (const double factor : {1.0, 2.0, 5.0}) times.push_back(suite_seconds * factor * power);
  return times;
}

class Planning {
 public:
  Planning(const PlanCommand& command, const std::vector<RatedRuns>& rates)
      : command_(command), rates_(rates) {
    for (const RatedRuns& test : rates) {
      const double seconds = std::max(test.seconds, 1e-3);
      costs_.push_back({RunChances::of_counts(test.passes, test.failures), seconds});
      simulated_.tests.push_back({test.test, test.rate(), seconds});
      curve_.suite_seconds += seconds;
      curve_.flaky += test.passes > 0 && test.failures > 0;
      curve_.runs += test.passes + test.failures;
    }
    simulated_.prior = RerunPrior::usual();
    simulated_.lengths_known = true;
    curve_.tests = rates.size();
    curve_.simulations = command.simulations;
    curve_.seed = command.seed;
  }

  RerunCurve operator()() {
    curve_.source = command_.rates.empty() ? "by the history" : "by " + command_.rates;
    const std::vector<double> times =
        command_.time ? std::vector{std::chrono::duration<double>(*command_.time).count()}
                      : usual_times(curve_.suite_seconds);
    const auto found = simulate(times.back());
    for (const double seconds : times) curve_.points.push_back(point_at(seconds, found));
    curve_.notes.push_back(fmt::format(
        "rerunning everything: exact, no more runs of a test once it has both passed and failed; "
        "scheduled: {} simulations, seed {}, {} {} known runs",
        command_.simulations, command_.seed, "rates from", curve_.runs));
    if (command_.time) curve_.notes.push_back(in_a_sentence());
    return curve_;
  }

 private:
  std::vector<std::vector<double>> simulate(double until) const {
    std::vector<std::vector<double>> found;
    for (int i = 0; i < command_.simulations; ++i)
      found.push_back(
          simulate_reruns({&simulated_}, {}, until, command_.seed + static_cast<uint64_t>(i)));
    return found;
  }

  RerunCurve::Point point_at(double seconds, const std::vector<std::vector<double>>& found) const {
    RerunCurve::Point point;
    point.seconds = seconds;
    point.runs = runs_within(costs_, seconds, most_runs);
    point.everything = outlook_of(costs_, point.runs).detections;
    point.least = static_cast<double>(rates_.size());
    for (const std::vector<double>& one : found) {
      const auto count = static_cast<double>(std::ranges::upper_bound(one, seconds) - one.begin());
      point.scheduled += count / static_cast<double>(found.size());
      point.least = std::min(point.least, count);
      point.most = std::max(point.most, count);
    }
    return point;
  }

  std::string in_a_sentence() const {
    const RerunCurve::Point& point = curve_.points.front();
    return fmt::format("{} buys {:.1f} of {} known flaky tests, {:.1f} by rerunning everything {}",
                       format_duration(*command_.time), point.scheduled, curve_.flaky,
                       point.everything,
                       point.runs == 1 ? "once" : fmt::format("{} times", point.runs));
  }

  const PlanCommand& command_;
  const std::vector<RatedRuns>& rates_;
  std::vector<RerunCost> costs_;
  SimulatedProject simulated_;
  RerunCurve curve_;
};

Result<int> plan(const PlanCommand& command) {
  for (const std::string* file : {&command.svg, &command.html})
    if (!file->empty())
      if (auto ready = prepare_output_file(*file); !ready) return ready.error();
  const auto rates = command.rates.empty() ? rates_of_history(command) : read_rates(command.rates);
  if (!rates) return rates.error();
  const RerunCurve curve = Planning(command, *rates)();
  if (!command.svg.empty())
    if (auto done = replace_file(command.svg, curve_svg(curve)); !done) return done.error();
  if (!command.html.empty())
    if (auto done = replace_file(command.html, curve_html(curve)); !done) return done.error();
  Page page;
  page.print("{}", command.json ? curve_json(curve) : curve_text(curve));
  if (const int failed = page.write_out(); failed != 0) return failed;
  return static_cast<int>(curve.flaky > 0 ? ExitCode::success : ExitCode::test_failed);
}

}  // namespace

int plan_command(const Words& words) {
  PlanCommand command;
  CommandLine line("plan", plan_help);
  line.option("tests", command.patterns, "TARGET:NAME or globs of these; all when none is given")
      .takes("");
  line.option("--rates", command.rates, "a CSV file instead of the history").takes("FILE");
  line.option("--time", command.time, "this one instead of a row of times");
  line.option("--svg", command.svg, "write the curve as a drawing").takes("FILE");
  line.option("--html", command.html, "write all of it as a page").takes("FILE");
  line.option("--simulations", command.simulations, "of scheduled runs [20]").between(1, 1000);
  line.option("--seed", command.seed, "of the first simulation");
  line.flag("--json", command.json, "JSON instead of text");
  command.history.add_to(line);
  command.configuration.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto code = plan(command);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
