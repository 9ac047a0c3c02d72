#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/events.h"
#include "model/outcome.h"
#include "model/plan.h"
#include "model/repro.h"
#include "model/test.h"
#include "stats/rates.h"

namespace unflake {

// A test whose outcome depends on what ran before it.
struct OrderRelation {
  enum class Kind {
    victim,   // passes alone, fails after its makers: polluters
    brittle,  // fails alone, passes after its makers: state-setters
  };
  Kind kind = Kind::victim;
  std::shared_ptr<const Test> test;
  std::vector<std::shared_ptr<const Test>> makers;  // all are needed, in this order
  // Each of these, between the makers and the test, undoes what they did: cleaners of a victim.
  std::vector<std::shared_ptr<const Test>> undoers;
  Arrangement arrangement;  // in which the suite runs the makers before the test
  // Confirmed by fresh runs: how often the test fails after its makers, and alone.
  Count behind_makers, alone;
  Failure failure;
  std::string signature;

  const Count& failing() const { return kind == Kind::victim ? behind_makers : alone; }
  const Count& passing() const { return kind == Kind::victim ? alone : behind_makers; }
};

// A test that failed in some runs and passed in others for another reason than the order.
struct UnrelatedFlake {
  std::shared_ptr<const Test> test;
  Count alone;      // failures
  Count in_orders;  // of runs with all tests
};

struct OrderReport {
  std::vector<OrderRelation> relations;
  std::vector<UnrelatedFlake> flakes;
  std::vector<std::string> notes;  // what was respected, left out or not possible
  size_t tests = 0;
  int orders = 0;           // different ones of all tests
  double pairs_seen = 0;    // the part of all pairs of tests that ran in both orders
  int processes = 0;        // that were started
  int64_t test_runs = 0;    // of all tests together
  bool is_complete = true;  // false: there was no time for the rest
  double suite_runs() const {
    return tests == 0 ? 0 : static_cast<double>(test_runs) / static_cast<double>(tests);
  }
};

// What one factor of the surroundings does to a test.
struct FactorFinding {
  std::shared_ptr<const Test> test;
  std::string factor;     // "time zone"
  Conditions conditions;  // under which the outcome changes
  Conditions reference;   // that it is compared with; nearly always none
  Count with, without;    // failures under the conditions, and under the reference
  Failure failure;
  std::string signature;

  bool fails_under_it() const { return with.rate() > without.rate(); }
};

struct FactorReport {
  struct NotTried {
    std::string factor, why;
  };
  std::vector<FactorFinding> findings;
  std::vector<NotTried> not_tried;
  std::vector<std::string> notes;
  int levels = 0;  // conditions that were tried
  int runs = 0;
  bool is_complete = true;
};

// What runs of a test, built at one commit, have shown.
struct CommitLook {
  enum class Answer {
    fails,  // as it does at the bad end
    holds,
    untold,  // it does not build, or no run says anything
  };
  Answer answer = Answer::untold;
  Count failures;   // as recorded, of the runs that could have shown it
  int runs = 0;     // all that it took, those that only look included
  std::string how;  // what was run, or why nothing was
};

std::string_view to_string(CommitLook::Answer answer);

// The search for the first of several commits, oldest first, at which a test fails.
struct CommitBisection {
  enum class Answer {
    found,
    several,       // those between the two that tell cannot be told
    fails_before,  // at the good end, too
    never_fails,   // at the bad end
    unfinished,    // stopped, or out of time
  };
  struct Step {
    size_t commit = 0;
    bool is_thorough = false;
    CommitLook look;
  };
  Answer answer = Answer::unfinished;
  size_t last_holding = 0, first_failing = 0;
  std::vector<Step> steps;

  int runs() const;
};

struct BisectReport {
  struct Commit {
    std::string id, subject;
  };
  TestId test;
  std::string from, to;         // as they were named
  std::vector<Commit> commits;  // the good end first, the bad end last
  CommitBisection bisection;
  // How it fails at the bad end; none: only in plain runs, or not at all.
  std::optional<Repro> repro;
  std::string headline, signature;
  std::string how;   // what makes it fail, in words
  Count at_bad_end;  // plain runs there, where those had to tell
  int runs = 0;      // all of them, the search at the bad end included
  int builds = 0;
  Duration in_builds{}, elapsed{};
  std::vector<std::string> notes;

  // That introduced the failure; none: not known.
  const Commit* first() const;
};

// "1a2b3c4d5e"
std::string short_id(const BisectReport::Commit& commit);

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
  Duration mean{};                      // of a plain run
  std::optional<Duration> found_after;  // since the beginning; none: it has shown no sign
  double chance = 0;  // of being flaky, by all that was seen; for what has shown no sign

  size_t threads = 0;              // in a run that was looked at
  std::vector<std::string> waits;  // groups of timing APIs that could make it depend on time
  std::vector<std::string> hints;  // root causes that functions it executed are characteristic of
  bool was_searched = false;       // for a schedule or a delay under which it fails
  bool lacked_time = false;        // it might have been searched, had there been time
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
  size_t lacked_time() const;
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
