#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/events.h"
#include "model/repro.h"

namespace unflake {

// What is known of one test after a look for flaky ones. Answers of different kinds are never
// mixed: what was seen in plain runs, what a perturbation brings about, and what was not seen.
struct DetectedTest {
  enum class Answer {
    seen_flaky,       // plain runs of the same code have both passed and failed
    fails_perturbed,  // late by so much, or in this order, and not in plain runs
    no_sign,          // all plain runs passed: the rate is below a bound
    always_fails,     // in every plain run
    skipped,
    not_run,  // `why`
  };

  TestId id;
  Answer answer = Answer::not_run;
  std::string why;      // it was not run, or not looked into
  Tally plain;          // plain runs of this session
  std::string failure;  // headline of the first failure that was seen
  std::string signature;
  Duration mean{};    // of a plain run
  double chance = 0;  // of being flaky, by all that was seen; for what has shown no sign

  size_t threads = 0;              // in a run that was looked at
  std::vector<std::string> waits;  // groups of timing APIs that could make it depend on time
  std::vector<std::string> hints;  // root causes that functions it executed are characteristic of
  bool was_searched = false;       // for a schedule or a delay under which it fails
  int factors_tried = 0;           // changes of its surroundings
  int trials = 0;
  std::optional<Repro> perturbed;  // what makes it fail, the least lateness first
  std::string repro_file;

  // It takes an order of tests, or a factor of the surroundings, and no lateness.
  bool is_plain_cause() const {
    return perturbed && (perturbed->order.has_value() || !perturbed->factor.empty());
  }
  bool is_margin() const { return perturbed && perturbed->is_margin(); }
};

std::string_view to_string(DetectedTest::Answer answer);

struct DetectReport {
  std::string target;
  std::string selection;  // which tests, and by which rule, when not all
  std::string commit;
  Duration budget{}, elapsed{};
  Duration in_plain_runs{}, in_trials{};  // test-seconds
  int plain_runs = 0, trials = 0;
  bool stopped = false;  // by the user
  std::string enough;    // why it ended before its time: nothing is left that is worth a run
  std::vector<DetectedTest> tests;  // seen flaky first, then by slack, then the rest
  std::vector<std::string> notes;

  size_t count(DetectedTest::Answer answer) const;
};

// What a time spent on plain reruns is expected to find.
struct RerunCurve {
  struct Point {
    double seconds = 0;
    uint64_t runs = 0;           // of each test, when all are rerun alike
    double everything = 0;       // detections expected of that
    double scheduled = 0;        // of runs that the scheduler chooses: mean, least and most of all
    double least = 0, most = 0;  // simulations
  };
  std::string source;  // a history, or a file
  size_t tests = 0, flaky = 0;
  int64_t runs = 0;          // that the rates come from
  double suite_seconds = 0;  // one run of each
  int simulations = 0;
  uint64_t seed = 1;
  std::vector<Point> points;  // by time
  std::vector<std::string> notes;
};

// Seen flaky first; then what fails when late, short slack first; then what always fails, then what
// has shown nothing, the likeliest first.
void sort_by_answer(std::vector<DetectedTest>& tests);

// The least lateness that makes it fail; zero: none, an order is enough. None: not measured.
std::optional<Duration> slack_of(const Repro& repro);

}  // namespace unflake
