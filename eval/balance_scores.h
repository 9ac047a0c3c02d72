#pragma once

#include "balance_results.h"
#include "scores.h"
#include "timed_truth.h"

namespace unflake::eval {

struct MeasuredTimes {
  const TimedTruth* truth = nullptr;
  const TimedMeasurement* result = nullptr;
};

constexpr double tolerated_rate = 0.001;
constexpr double lowered_by = 1.1;

// How many of so many runs may fail.
int tolerated_failures(int runs);

// Whether reruns keep to the tolerance: of themselves, or compared with what fails anyway.
bool meets_tolerance(const Rerun& rerun, const Rerun& base);

// Whether more runs cannot change that any more.
bool has_failed(const Rerun& rerun, const Rerun& base, int checks);

// Where a proposed value lies, as reruns show it.
enum class Place {
  none,    // the value was not found, or nothing was proposed for it
  below,   // it fails more often than tolerated
  within,  // it holds, and a tenth less does not
  above,   // a tenth less holds, too
};
std::string_view to_string(Place place);

struct ProposalCase {
  std::string program;
  std::vector<std::string> lines;  // of the values that must change together; mostly one
  Place place = Place::none;
};

// One for each value with a threshold.
std::vector<ProposalCase> cases_of(const TimedTruth& truth, const CheckedProposal& proposal,
                                   const Rerun& base);

// The lines of the values that are lowered together, case by case.
std::vector<std::vector<std::string>> lines_to_lower(const TimedTruth& truth);

// Whether a proposal does to a value what the truth expects.
bool is_as_expected(const TimedValue& truth, const BalanceAnswer& answer);

// Over all tests of all suites that something was proposed for.
struct SuiteTotals {
  double claimed_s = 0, measured_s = 0;
  size_t tests = 0;
  std::vector<std::string> worse;  // that fail more often than before
};
SuiteTotals totals_of(const std::vector<SuiteMeasurement>& suites);

// The table of targets, in a fixed order.
std::vector<Score> balance_scores(const std::vector<MeasuredTimes>& all,
                                  const BalanceResults& results);

}  // namespace unflake::eval
