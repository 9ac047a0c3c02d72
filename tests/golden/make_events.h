#pragma once

#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "model/events.h"
#include "report/layout.h"

namespace unflake::golden {

using namespace std::chrono_literals;

using TestPtr = std::shared_ptr<const Test>;

struct StringSink : Sink {
  std::string text;
  std::vector<std::string> writes;
  void write(std::string_view bytes) override {
    text += bytes;
    writes.emplace_back(bytes);
  }
};

inline TestPtr make_test(std::string target, std::string name,
                         Framework framework = Framework::gtest) {
  Test test;
  test.id = {std::move(target), std::move(name)};
  test.framework = framework;
  return std::make_shared<const Test>(std::move(test));
}

inline RunEnded make_run(TestPtr test, int attempt, OutcomeKind kind, Duration duration) {
  RunEnded run;
  run.test = std::move(test);
  run.attempt = attempt;
  run.result.started = std::chrono::system_clock::time_point(1'772'366'400s);  // 2026-03-01 12:00
  run.result.outcome.kind = kind;
  run.result.outcome.duration = duration;
  return run;
}

inline RunEnded passing(TestPtr test, int attempt = 1, Duration duration = 12'300us) {
  return make_run(std::move(test), attempt, OutcomeKind::pass, duration);
}

inline void set_output(RunEnded& run, const std::string& text) {
  run.result.process.output = {.head = text, .tail = "", .total = text.size()};
}

inline RunEnded failing(TestPtr test, int attempt, Failure failure, std::string signature,
                        const std::string& output = "") {
  RunEnded run = make_run(std::move(test), attempt, OutcomeKind::fail, 15'200us);
  run.result.process.code = 1;
  run.result.outcome.failures = {std::move(failure)};
  run.result.outcome.signature = std::move(signature);
  set_output(run, output);
  return run;
}

inline RunEnded crashing(TestPtr test, int attempt, int signal_number) {
  RunEnded run = make_run(std::move(test), attempt, OutcomeKind::crash, 3'100us);
  run.result.process.end = ProcessResult::End::signalled;
  run.result.process.code = signal_number;
  Failure failure;
  failure.kind = FailureKind::signal;
  failure.message = "Segmentation fault";
  run.result.outcome.failures = {std::move(failure)};
  run.result.outcome.signature = "c0ffee00c0ffee00";
  return run;
}

inline Failure assertion(std::string file, int line, std::string expression) {
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = std::move(file);
  failure.line = line;
  failure.expression = std::move(expression);
  return failure;
}

}  // namespace unflake::golden
