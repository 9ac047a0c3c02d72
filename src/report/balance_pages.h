#pragma once

#include <string>
#include <vector>

#include "model/balance_report.h"
#include "report/layout.h"

namespace unflake {

// With `all`, every setting that was tried, at every load.
std::string balance_text(const BalanceReport& report, const Style& style, bool all = false);
std::string claim_text(const ClaimReport& report, const Style& style);
std::string suite_balance_text(const SuiteBalance& suite, const Style& style);

// Failure rate and run time by what one of the values was set to, with intervals, at each load:
// also where it is now, what is proposed, and between which values the limit is. Empty when the
// value was not varied.
std::string balance_svg(const BalanceReport& report, size_t value);

// One page each, which needs nothing else.
std::string balance_html(const BalanceReport& report);
std::string suite_balance_html(const SuiteBalance& suite);

// docs/formats.md describes the members.
std::string balance_json(const BalanceReport& report);
std::string claim_json(const ClaimReport& report);
std::string suite_balance_json(const SuiteBalance& suite);

// What the reports about time values say: every format says the same. Safe to print, one line each.
struct BalanceTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> remarks;
};

struct BalancedValueWords {
  size_t index = 0;      // in the report's values
  std::string title;     // "1. post_test.cc:44 in Post_Delivers_Test::TestBody: nanosleep"
  std::string proposal;  // "42 ms instead of 200 ms"
  bool is_changed = false;
  std::vector<std::string> facts;     // what was seen there
  std::vector<std::string> evidence;  // what was tried
  std::vector<std::string> advice;
  // Where the value is in the source; the lines are empty when it was not found there.
  std::string place, old_line, new_line;
  std::string caution;  // what else the edit changes
};

struct BalanceWords {
  std::string test;
  std::string result;  // in one sentence
  std::vector<BalancedValueWords> values;
  std::vector<std::string> foreign;   // values of third-party code
  std::vector<std::string> measured;  // of the test with its own values, when it fails with them
  std::vector<std::string> meaning;   // what the runs prove, and what they do not
  std::vector<std::string> notes;     // how the runs were made, and what else to know
};

struct ClaimWords {
  std::string test;
  std::string result;
  std::vector<std::string> value;     // where it is and what was seen there
  std::vector<std::string> measured;  // at each load
  std::vector<std::string> answers;   // at each load
  std::vector<std::string> notes;
};

struct SuiteBalanceWords {
  std::string result;
  BalanceTable ranking;
  std::vector<std::string> notes;
};

BalanceWords words_of(const BalanceReport& report);
ClaimWords words_of(const ClaimReport& report);
SuiteBalanceWords words_of(const SuiteBalance& suite);

BalancedValueWords words_of(const BalanceReport& report, size_t value);
// The place, what it asks for and what became of that.
std::vector<std::string> facts_of(const TimeValue& value);
std::string title_of(const TimeValue& value);

// The test's own values and the proposed ones at each load, and the Pareto front at idle; or all
// that was tried.
BalanceTable settings_table(const BalanceReport& report, bool all);

// Exact, in the unit that reads best: "42.5 ms".
std::string value_text(Duration value);
std::string ms_text(double ms);
// "3 of 160 runs failed (1.9 %, 95 % interval 0.39..5.4 %)", "0 of 160 runs failed (rate below
// 1.9 % with 95 % confidence)".
std::string failures_text(const Count& failures, double confidence);
std::string confidence_text(double confidence);  // "95 %"

}  // namespace unflake
