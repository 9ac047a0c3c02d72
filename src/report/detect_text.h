#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/detect_report.h"
#include "model/executed.h"
#include "model/repro.h"
#include "report/layout.h"

namespace unflake {

// A look for flaky tests as it happens: what is done, what was found, and on a terminal a last line
// that counts.
class DetectProgress : public Consumer {
 public:
  // `time` says how much of it is over.
  DetectProgress(Sink& sink, bool colour, bool live, std::function<std::string()> time = {})
      : sink_(sink), style_(colour), live_(live), time_(std::move(time)) {}
  ~DetectProgress() override { print(""); }
  void on(const Event& event) override;

 private:
  void print(const std::string& line);
  void count();

  Sink& sink_;
  const Style style_;
  const bool live_;
  const std::function<std::string()> time_;
  bool is_counting_ = false;
  int runs_ = 0, trials_ = 0, found_ = 0;
  std::string now_;
};

std::string detect_text(const DetectReport& report, const Style& style);
// docs/formats.md describes the members.
std::string detect_json(const DetectReport& report);
// What was found is a failure, with its kind as type; what has shown no sign passes.
std::string detect_junit(const DetectReport& report);
// One page without anything to load.
std::string detect_html(const DetectReport& report);

std::string curve_text(const RerunCurve& curve);
std::string curve_json(const RerunCurve& curve);
std::string curve_svg(const RerunCurve& curve);
std::string curve_html(const RerunCurve& curve);

// The words that all reports on detection share. Names of tests and messages are not made safe
// here.

// "3/20 runs failed"; "none of 300 failed".
std::string plain_words(const DetectedTest& test);
// "12.0 ms", "any order", "-".
std::string slack_cell(const DetectedTest& test);
// Behind "fails when": "a thread is 12.0 ms late", "threads go in another order".
std::string perturbed_words(const DetectedTest& test);
// Of a test that was seen flaky: what makes it fail, or what was tried.
std::string cause_words(const DetectedTest& test);
// Whether a schedule or a delay was looked for, and what came of it.
std::string searched_words(const DetectedTest& test);
// What makes a test flaky, in one sentence.
std::string finding_words(const DetectedTest& test);
// What was found, what it cost, and what to do next.
std::vector<std::string> summary_of(const DetectReport& report);
// "5 m", "1.5 h".
std::string time_words(double seconds);

// Which commit introduced a flaky failure, and what that rests on.
std::string bisect_text(const BisectReport& report, const Style& style);
// docs/formats.md describes the members.
std::string bisect_json(const BisectReport& report);

// What the orders of a suite showed: for people, and as docs/formats.md describes it.
std::string orders_text(const OrderReport& report, const Style& style);
std::string orders_json(const OrderReport& report);

// The same of the factors of a test's surroundings.
std::string factors_text(const Test& test, const FactorReport& report, const Style& style);
std::string factors_json(const Test& test, const FactorReport& report);

// "A.Victim fails after B.Polluter and passes alone"
std::string order_sentence(const OrderRelation& relation);
// "it fails when the time zone is UTC0"
std::string factor_sentence(const FactorFinding& finding);

// Why a test with a recorded order or factor fails, in a sentence, and what to do about it.
std::string plain_cause(const Repro& repro);
std::string plain_advice(const Repro& repro);
// Both with the runs that show it, and with what a cleaner does.
std::string plain_cause_text(const Repro& repro);
std::string plain_cause_json(const Repro& repro);

std::string training_text(const TrainingReport& report, const Style& style);
std::string training_json(const TrainingReport& report);

}  // namespace unflake
