#pragma once

#include <string>
#include <vector>

#include "model/detect_report.h"

namespace unflake {

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

}  // namespace unflake
