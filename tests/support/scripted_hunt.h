#pragma once

#include <random>

#include "search/reproduce/hunt.h"
#include "support/mock_executor.h"

namespace unflake {

// A hunt for the failures of a test whose outcomes a function tells.
struct ScriptedHunt : Consumer {
  explicit ScriptedHunt(MockExecutor::FullTruth truth, const HuntOptions& options = {})
      : executor(std::move(truth)), hunt(executor, a_test(), options, events) {
    events.add(*this);
  }

  static std::shared_ptr<const unflake::Test> a_test() {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"scripted_test", "Scripted"};
    return test;
  }

  void on(const Event& event) override {
    if (const auto* step = std::get_if<SearchStep>(&event)) said.push_back(step->text);
  }

  MockExecutor executor;
  EventStream events;
  std::vector<std::string> said;
  Hunt hunt;
};

inline Failure failure_at(const std::string& file, int line) {
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = file;
  failure.line = line;
  return failure;
}

// A run in which every delay happened.
inline ExperimentResult passes(const Experiment& experiment, Duration duration) {
  ExperimentResult result;
  result.outcome.duration = result.process.duration = duration;
  auto trace = std::make_shared<Trace>();
  for (size_t i = 0; i < experiment.plan.interventions.size(); ++i)
    trace->interventions.push_back({1, 1, 0, experiment.plan.interventions[i].duration});
  result.trace = trace;
  return result;
}

inline ExperimentResult fails(const Experiment& experiment, Duration duration,
                              const Failure& failure = failure_at("scripted.cc", 1)) {
  ExperimentResult result = passes(experiment, duration);
  result.outcome.kind = OutcomeKind::fail;
  result.outcome.failures = {failure};
  result.outcome.signature = signature_of(failure);
  return result;
}

// Whatever it is, it does not stop until it is stopped.
inline ExperimentResult hangs(const Experiment& experiment) {
  Failure failure;
  failure.kind = FailureKind::timeout;
  ExperimentResult result = fails(experiment, experiment.timeout, failure);
  result.outcome.kind = OutcomeKind::timeout;
  result.process.end = ProcessResult::End::timed_out;
  return result;
}

inline ExperimentResult does_not_start(const Experiment& experiment, const std::string& why) {
  Failure failure;
  failure.kind = FailureKind::not_started;
  ExperimentResult result = fails(experiment, Duration::zero(), failure);
  result.process.end = ProcessResult::End::not_started;
  result.process.error = why;
  result.trace = nullptr;
  return result;
}

// Fails in one part of the plain runs and in another of those with delays.
inline MockExecutor::FullTruth by_chance(double plain, double late, uint64_t seed,
                                         Duration duration = std::chrono::milliseconds(10)) {
  return [=](const Experiment& experiment, int nth) {
    std::mt19937_64 random(seed * 1000003 + static_cast<uint64_t>(nth));
    const double rate = experiment.plan.interventions.empty() ? plain : late;
    const bool is_bad = std::uniform_real_distribution()(random) < rate;
    return is_bad ? fails(experiment, duration) : passes(experiment, duration);
  };
}

inline Trial late_at(const Hunt& hunt, int line, Duration delay = std::chrono::milliseconds(100)) {
  Trial trial{hunt.base_plan(), {}, "tested"};
  Intervention late;
  late.site.file = "scripted.cc";
  late.site.line = line;
  late.site.api = "sched_yield";
  late.duration = delay;
  trial.plan.interventions = {late};
  return trial;
}

}  // namespace unflake
