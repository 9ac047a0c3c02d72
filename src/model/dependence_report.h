#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "model/plan.h"
#include "model/test.h"
#include "stats/intervals.h"

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
  // Confirmed by fresh runs: how often the test fails behind its makers, and alone.
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

}  // namespace unflake
