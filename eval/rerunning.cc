#include <algorithm>
#include <thread>

#include "app/agent_command.h"
#include "cli/inject.h"
#include "figures.h"
#include "rerunning.h"

namespace unflake::eval {
namespace {

Plan agent_plan() {
  Plan plan;
  plan.agent = true;
  return plan;
}

Conditions conditions_of(Machine machine) {
  Conditions conditions;
  conditions.one_core = machine == Machine::one_core;
  conditions.competitors =
      machine == Machine::busy ? static_cast<int>(std::thread::hardware_concurrency()) : 0;
  return conditions;
}

Result<Intervention> scaling(const SetTime& time, const Trace& known) {
  const auto parsed = parse_interventions({{}, {}, {time.site + "=1s"}, {}}, known);
  if (!parsed) return parsed.error();
  Intervention scaled = parsed->front().intervention;
  scaled.action = Intervention::Action::scale_time;
  scaled.duration = Duration(Duration(std::chrono::seconds(1)).count() * time.then.count() /
                             std::max<int64_t>(time.now.count(), 1));
  return scaled;
}

}  // namespace

Rerunning::Rerunning(std::unique_ptr<OneTest> one) : one_(std::move(one)) {}
Rerunning::Rerunning(Rerunning&&) noexcept = default;
Rerunning::~Rerunning() = default;

Result<Rerunning> Rerunning::of(const TestWords& words, const std::string& config) {
  OneTestOptions options;
  options.target.words = words.words;
  options.configuration.path = config;
  auto one = OneTest::find(options, {{}, words.command, !words.command.empty()});
  if (!one) return one.error();
  Rerunning rerunning(std::move(*one));
  Plan plan = agent_plan();
  plan.calls = plan.stacks = true;  // the names of sites come from stacks
  auto profile = rerunning.one_->run({plan, {}, ""}, TrialEnded::Purpose::profile);
  if (!profile) return profile.error();
  rerunning.known_ = std::move(profile->trace);
  return rerunning;
}

Result<Rerun> Rerunning::run(const SetTimes& times, int most, const IsEnough& is_enough,
                             Machine machine) {
  Plan plan = agent_plan();
  for (const SetTime& time : times) {
    auto scaled = scaling(time, *known_);
    if (!scaled) return scaled.error();
    plan.interventions.push_back(std::move(*scaled));
  }
  Rerun rerun;
  std::vector<double> passed_ms;
  while (rerun.runs < most && !is_enough(rerun)) {
    const auto result = one_->run({plan, conditions_of(machine), ""}, TrialEnded::Purpose::setting);
    if (one_->stop_signal() != 0) return internal_error("interrupted");
    if (!result) return result.error();
    ++rerun.runs;
    rerun.failures += result->outcome.failed();
    if (!result->outcome.failed())
      passed_ms.push_back(static_cast<double>(result->outcome.duration.count()) / 1000);
  }
  rerun.median_ms = median(passed_ms);
  return rerun;
}

}  // namespace unflake::eval
