#include "measure_balance.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "balance_scores.h"
#include "rerunning.h"
#include "subprocess.h"
#include "support/temp_folder.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

constexpr Duration longest_search = 30min;
constexpr Duration longest_suite = 120min;

// Failures of tests that fail anyway are compared, which a handful of runs is too few for.
constexpr int fewest_to_compare = 50;

const auto never = [](const Rerun&) { return false; };

std::string trouble_with(const ToolResult& result) {
  if (result.timed_out) return "it did not end in time";
  if (result.status == 0) return "";
  return fmt::format("exit status {}: {}", result.status, shorten(trim(result.errors), 300));
}

Result<ToolResult> run_balance(const BalanceTools& tools, const TestWords& test,
                               const Words& options, Duration at_most) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file(".unflake"));  // a project of its own
  Words words{tools.unflake, "balance", "--json", "--config", tools.config};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), test.words.begin(), test.words.end());
  if (!test.command.empty()) words.push_back("--");
  words.insert(words.end(), test.command.begin(), test.command.end());
  return run_tool(words, folder.path(), at_most);
}

// The values that were proposed, those of the lines lowered; of what is not changed nothing.
SetTimes set_times(const BalanceAnswer& answer, const Words& lowered = {}) {
  SetTimes times;
  for (const BalanceAnswer::Value& value : answer.values) {
    const bool is_lowered = std::ranges::find(lowered, value.line()) != lowered.end();
    if (!value.is_changed() && !is_lowered) continue;
    const int64_t from = value.is_changed() ? value.proposed_us : value.now_us;
    const auto us = is_lowered ? std::llround(static_cast<double>(from) / lowered_by) : from;
    times.push_back({value.site, Duration(value.now_us), Duration(us)});
  }
  return times;
}

class MeasuringProgram {
 public:
  MeasuringProgram(const TimedTruth& truth, const BalanceTools& tools,
                   const BalanceSettings& settings)
      : truth_(truth),
        tools_(tools),
        settings_(settings),
        test_(test_words(truth.framework, tools.timed + "/" + truth.program, truth.test)) {}

  Result<TimedMeasurement> operator()() {
    // With that priority no thread preempts another, and one that wakes up waits until what it
    // looks for has been computed.
    prefer_own_work(settings_.real_time && !truth_.computes());
    result_.program = truth_.program;
    if (auto done = measure_base(); !done) return done.error();
    for (int i = 0; i < settings_.repeat; ++i) {
      auto proposal = checked({"--load", "idle"});
      if (!proposal) return proposal.error();
      result_.proposals.push_back(std::move(*proposal));
    }
    if (settings_.with_fatb && !lines_to_lower(truth_).empty()) {
      auto fatb = checked({"--load", "idle", "--method", "fatb"});
      if (!fatb) return fatb.error();
      result_.fatb = std::move(*fatb);
    }
    if (settings_.with_loads && !lines_to_lower(truth_).empty())
      if (auto done = measure_at_loads(); !done) return done.error();
    return std::move(result_);
  }

 private:
  Result<BalanceAnswer> ask(const Words& options) const {
    const auto said = run_balance(tools_, test_, options, longest_search);
    if (!said) return said.error();
    BalanceAnswer answer = read_balance(said->output);
    if (const std::string trouble = trouble_with(*said); !trouble.empty())
      answer.error = trouble + join(answer.notes, " ");
    return answer;
  }

  bool is_enough(const Rerun& seen) const {
    if (result_.base.failures > 0 && seen.runs < fewest_to_compare) return false;
    return seen.runs > 0 && has_failed(seen, result_.base, settings_.checks);
  }

  Result<Rerun> rerun(Rerunning& again, const SetTimes& times) const {
    return again.run(times, settings_.checks,
                     [this](const Rerun& seen) { return is_enough(seen); });
  }

  Result<void> measure_base() {
    if (!truth_.is_flaky_anyway()) return {};
    auto again = Rerunning::of(test_, tools_.config);
    if (!again) return again.error();
    const auto base = again->run({}, settings_.checks, never);
    if (!base) return base.error();
    result_.base = *base;
    return {};
  }

  Result<CheckedProposal> checked(const Words& options) const {
    auto answer = ask(options);
    if (!answer) return answer.error();
    CheckedProposal proposal{std::move(*answer), {}, {}};
    auto again = Rerunning::of(test_, tools_.config);
    if (!again) return again.error();
    if (!proposal.answer.error.empty()) return proposal;
    const auto times = set_times(proposal.answer);
    if (!times.empty() || !lines_to_lower(truth_).empty()) {
      const auto as_proposed = rerun(*again, times);
      if (!as_proposed) return as_proposed.error();
      proposal.as_proposed = *as_proposed;
    }
    for (const Words& lines : lines_to_lower(truth_))
      if (auto done = lower(*again, lines, proposal); !done) return done.error();
    return proposal;
  }

  Result<void> lower(Rerunning& again, const Words& lines, CheckedProposal& proposal) const {
    const bool are_known = std::ranges::all_of(
        lines, [&](const std::string& line) { return proposal.answer.at(line) != nullptr; });
    if (!are_known) return {};
    const auto lowered = rerun(again, set_times(proposal.answer, lines));
    if (!lowered) return lowered.error();
    proposal.lowered.push_back({lines, *lowered});
    return {};
  }

  // Here others may take the processor from the test: that is the point.
  Result<void> measure_at_loads() {
    prefer_own_work(false);
    auto answer = ask({});
    if (!answer) return answer.error();
    CheckedAtLoads at{std::move(*answer), {}, {}, {}, {}, {}};
    auto again = Rerunning::of(test_, tools_.config);
    if (!again) return again.error();
    const SetTimes proposed = set_times(at.answer);
    const std::tuple<Rerun*, SetTimes, Machine> all[] = {
        {&at.idle, proposed, Machine::idle},
        {&at.busy, proposed, Machine::busy},
        {&at.one_core, proposed, Machine::one_core},
        {&at.own_busy, {}, Machine::busy},
        {&at.own_one_core, {}, Machine::one_core}};
    for (const auto& [rerun, times, machine] : all) {
      const auto seen = again->run(times, settings_.load_runs, never, machine);
      if (!seen) return seen.error();
      *rerun = *seen;
    }
    result_.at_loads = std::move(at);
    return {};
  }

  const TimedTruth& truth_;
  const BalanceTools& tools_;
  const BalanceSettings& settings_;
  const TestWords test_;
  TimedMeasurement result_;
};

Result<SuiteMeasurement::Checked> rerun_both(const std::string& executable,
                                             const std::string& config, const BalanceAnswer& answer,
                                             int runs) {
  const std::string name = answer.test.substr(answer.test.find(':') + 1);
  auto again = Rerunning::of({{executable, name}, {}}, config);
  if (!again) return again.error();
  const auto before = again->run({}, runs, never);
  if (!before) return before.error();
  const auto after = again->run(set_times(answer), runs, never);
  if (!after) return after.error();
  return SuiteMeasurement::Checked{answer.test, *before, *after};
}

}  // namespace

bool prefer_own_work(bool preferred) {
  sched_param how{};
  how.sched_priority = preferred ? 1 : 0;
  return ::sched_setscheduler(0, preferred ? SCHED_FIFO : SCHED_OTHER, &how) == 0;
}

Result<TimedMeasurement> measure_program(const TimedTruth& truth, const BalanceTools& tools,
                                         const BalanceSettings& settings) {
  return MeasuringProgram(truth, tools, settings)();
}

Result<SuiteMeasurement> measure_suite(const std::string& framework, const BalanceTools& tools,
                                       const BalanceSettings& settings) {
  prefer_own_work(settings.real_time);
  const std::string executable = tools.timed + "/suite_" + framework;
  const auto said =
      run_balance(tools, {{executable}, {}}, {"--all", "--load", "idle"}, longest_suite);
  if (!said) return said.error();
  SuiteMeasurement measured{read_suite_balance(said->output), {}};
  if (const std::string trouble = trouble_with(*said); !trouble.empty())
    measured.answer.error = trouble;
  for (const BalanceAnswer& test : measured.answer.tests) {
    if (set_times(test).empty()) continue;
    auto both = rerun_both(executable, tools.config, test, settings.suite_runs);
    if (!both) return both.error();
    measured.tests.push_back(std::move(*both));
  }
  return measured;
}

}  // namespace unflake::eval
