#include "detect_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "markdown.h"
#include "search/detect/rerun_scheduler.h"

namespace unflake::eval {
namespace {

constexpr double wanted_share = 0.5;
constexpr double least_seconds = 1e-4;  // below what the clocks of such data can tell
constexpr double never = std::numeric_limits<double>::infinity();

std::vector<RatedTest> rated(const ReplayedProject& project) {
  std::vector<RatedTest> tests;
  for (const RatedRuns& test : project.tests) tests.push_back({test.rate(), test.seconds});
  return tests;
}

RerunPrior learned_without(size_t left_out, const std::vector<ReplayedProject>& all) {
  std::vector<std::vector<RatedTest>> others;
  for (size_t i = 0; i < all.size(); ++i)
    if (i != left_out) others.push_back(rated(all[i]));
  return RerunPrior::learned(others);
}

SimulatedProject simulated(const ReplayedProject& project) {
  SimulatedProject result{{}, project.prior};
  for (const RatedRuns& test : project.tests)
    result.tests.push_back({test.test, test.rate(), test.seconds});
  return result;
}

RerunOutlook sum_of(const std::vector<const ReplayedProject*>& projects) {
  RerunOutlook all;
  for (const ReplayedProject* project : projects) {
    all.most_runs = project->everything.most_runs;
    all.detections += project->everything.detections;
    all.runs += project->everything.runs;
    all.seconds += project->everything.seconds;
  }
  return all;
}

std::string times_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.2f}", share) : "not reached";
}

std::string spread_text(const Spread& spread) {
  return fmt::format("{:.2f} ({:.2f}..{:.2f})", spread.mean, spread.min, spread.max);
}

int flaky_in(const ReplayedProject& project) {
  return static_cast<int>(
      std::count_if(project.tests.begin(), project.tests.end(),
                    [](const RatedRuns& test) { return test.passes > 0 && test.failures > 0; }));
}

std::string project_row(const ReplayResult& result) {
  const ReplayedProject& project = *result.projects.front();
  const Spread half = result.found_in_half_the_time();
  return row({project.name, std::to_string(project.tests.size()), std::to_string(flaky_in(project)),
              fmt::format("{:.1f}", result.everything.detections),
              fmt::format("{:.0f}", result.everything.seconds), times_text(result.share_of_time()),
              fmt::format("{:.1f} ({:.0f}..{:.0f})", half.mean, half.min, half.max)});
}

}  // namespace

std::vector<ReplayedProject> projects_of(const std::vector<RatedRuns>& rates,
                                         const ReplaySettings& settings) {
  std::map<std::string, ReplayedProject> by_name;
  for (RatedRuns test : rates) {
    test.seconds = std::max(test.seconds, least_seconds);
    by_name[test.project].tests.push_back(std::move(test));
  }
  std::vector<ReplayedProject> all;
  for (auto& [name, project] : by_name) {
    project.name = name;
    std::vector<RerunCost> costs;
    for (const RatedRuns& test : project.tests)
      costs.push_back({RunChances::of_counts(test.passes, test.failures), test.seconds});
    project.everything = outlook_of(costs, settings.most_runs);
    all.push_back(std::move(project));
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].prior = learned_without(i, all);
  return all;
}

namespace {

void in_threads(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (size_t number; (number = next++) < count;) work(number);
    });
}

// All repetitions together, or each of them.
bool has_found(const Detections& found, double wanted, bool each) {
  const auto is_enough = [&](const std::vector<double>& one) {
    return std::isfinite(time_until(one, wanted));
  };
  return std::isfinite(time_until(found, wanted)) &&
         (!each || std::ranges::all_of(found, is_enough));
}

}  // namespace

Detections replay(const std::vector<const ReplayedProject*>& projects, const RerunOptions& options,
                  const ReplaySettings& settings) {
  const RerunOutlook everything = sum_of(projects);
  std::vector<SimulatedProject> all;
  for (const ReplayedProject* project : projects) all.push_back(simulated(*project));
  std::vector<const SimulatedProject*> on_one_clock;
  for (const SimulatedProject& project : all) on_one_clock.push_back(&project);
  // A longer replay begins as a shorter one: it is made where that has not found enough.
  Detections found;
  for (const double end : {wanted_share, 1.0, settings.patience}) {
    found.assign(static_cast<size_t>(settings.repetitions), {});
    in_threads(found.size(), [&](size_t i) {
      found[i] =
          simulate_reruns(on_one_clock, options, end * everything.seconds, settings.seed + i);
    });
    if (has_found(found, everything.detections, projects.size() > 1)) break;
  }
  return found;
}

double time_until(const std::vector<double>& found, double wanted) {
  const auto number = static_cast<size_t>(std::ceil(wanted - 1e-9));
  if (number == 0) return 0;
  return number <= found.size() ? found[number - 1] : never;
}

double time_until(const Detections& found, double wanted) {
  std::vector<double> all;
  for (const std::vector<double>& one : found) all.insert(all.end(), one.begin(), one.end());
  std::sort(all.begin(), all.end());
  return time_until(all, wanted * static_cast<double>(found.size()));
}

double ReplayResult::share_of_time() const {
  return time_until(found, everything.detections) / everything.seconds;
}

Spread ReplayResult::shares_of_time() const {
  std::vector<double> shares;
  for (const std::vector<double>& one : found)
    shares.push_back(time_until(one, everything.detections) / everything.seconds);
  return spread_of(shares);
}

Spread ReplayResult::found_in_half_the_time() const {
  std::vector<double> counts;
  for (const std::vector<double>& one : found)
    counts.push_back(static_cast<double>(
        std::upper_bound(one.begin(), one.end(), wanted_share * everything.seconds) - one.begin()));
  return spread_of(counts);
}

ReplayResult replay_result(const std::vector<const ReplayedProject*>& projects,
                           const ReplaySettings& settings) {
  return {projects, sum_of(projects), replay(projects, {}, settings)};
}

double DetectFigures::time_alone() const {
  double seconds = 0;
  for (const ReplayResult& one : alone) {
    const double share = one.share_of_time();
    seconds += one.everything.seconds * (std::isfinite(share) ? share : settings.patience);
  }
  return seconds / together.everything.seconds;
}

std::vector<Score> detect_scores(const DetectFigures& figures) {
  const Spread shares = figures.together.shares_of_time();
  return {
      {"time for as many detections, all projects on one clock (mean, least..most)",
       spread_text(shares), fmt::format("at most {}", wanted_share), shares.mean <= wanted_share},
      {"the same, each project by itself, times added up",
       fmt::format("{:.2f}", figures.time_alone()), fmt::format("at most {}", wanted_share),
       figures.time_alone() <= wanted_share}};
}

std::string detect_section(const DetectFigures& figures, const Surroundings& where) {
  const RerunOutlook& all = figures.together.everything;
  size_t tests = 0;
  int flaky = 0;
  for (const ReplayedProject* project : figures.together.projects) {
    tests += project->tests.size();
    flaky += flaky_in(*project);
  }
  std::string text = fmt::format(
      "{}\n\nThe rerun scheduler, replayed on measured failure rates and run times ({}): {} tests "
      "of "
      "{} projects, {} of them\nflaky. Rerunning every test {} times, and no more once it has both "
      "passed and failed, is expected to find {:.1f} in {:.0f} s.\nTimes are shares of that, until "
      "as "
      "many are found; {} repetitions with seeds from {} on, outcomes drawn independently. What "
      "the "
      "scheduler\nbelieves before the first run was learned from the other projects only; nothing "
      "is "
      "known of a project, not even run times. A project of\nwhich not enough was found counts as "
      "{} "
      "times.\n\n",
      detect_heading, figures.source, tests, figures.alone.size(), flaky, all.most_runs,
      all.detections, all.seconds, figures.settings.repetitions, figures.settings.seed,
      figures.settings.patience);
  text += to_string(where) + "\n\n" + targets_text(detect_scores(figures)) + "\n";
  text += table_head({"project", "tests", "flaky", "found by rerunning everything", "in s",
                      "share of that time", "found in half of it"});
  for (const ReplayResult& one : figures.alone) text += project_row(one);
  return text;
}

}  // namespace unflake::eval
