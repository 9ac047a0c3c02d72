#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/repair.h"
#include "model/test.h"
#include "util/time.h"

namespace unflake {

// One failure of one test, in a report of its cause. Texts are as they came.
struct ReportedTest {
  TestId test;
  std::string signature, headline;
  int64_t failures = 0;   // runs that failed this way
  int64_t runs = 0;       // of the test, that passed or failed
  bool runs_cut = false;  // only the newest were counted
  int64_t builds = 0, suppressed_builds = 0;
  Duration wasted{};
  TimePoint first, last;
  std::string first_commit, last_commit;
  std::string owner;
  std::optional<Day> quarantined_until;
};

// What a repro file adds. The words are safe to print.
struct ReportedRepro {
  std::string replay, explain;  // commands
  std::string how_often;        // with its plan and without
  std::string slack;            // empty: not measured
  std::string category, advice;
  std::vector<std::string> story;
  std::optional<ProposedPatch> patch;  // that `unflake repair` has written
};

struct ReportedCause {
  int64_t id = 0;  // 0: not saved
  std::string title;
  bool is_open = true;
  int reopened = 0;
  std::string issue;                // its address; empty: none was opened
  std::vector<ReportedTest> tests;  // those that hit most builds first
  size_t tests_left_out = 0;        // the sums below contain them
  int64_t failures = 0, runs = 0;   // of the tests listed
  int64_t fewest_builds = 0;        // builds that were hit: a build in which two tests fail
  int64_t most_builds = 0;          // counts once, and which two did is not known
  int64_t suppressed_builds = 0;    // counted by test
  Duration wasted{};
  TimePoint first, last;
  std::string first_commit;
  std::vector<int64_t> hits_per_day;  // tests that failed, once per build; as long as the window
  std::optional<ReportedRepro> repro;
  std::string next;  // a command, when there is no repro
};

struct CauseReport {
  std::string project;
  Day first_day{}, last_day{};
  TimePoint written;
  int64_t runs = 0, builds = 0, flaky_builds = 0;  // of the window
  std::vector<ReportedCause> causes;               // those that hit most builds first
  size_t causes_left_out = 0;
  Day today{};
};

// A line of what is known about a cause; every format says the same.
struct CauseFact {
  std::string label, text;
  bool is_foreign = false;  // the text comes from outside and may look like markup
};

std::vector<CauseFact> facts_of(const ReportedCause& cause, Day today);

// "12 runs in 3 builds from 2026-03-01 to 2026-03-30 ...": what the report is drawn from.
std::string evidence_of(const CauseReport& report);

std::string cause_report_markdown(const CauseReport& report);
std::string cause_report_html(const CauseReport& report);
std::string cause_report_json(const CauseReport& report);

// The part about one cause, for an issue too.
std::string cause_markdown(const ReportedCause& cause, Day today);

// A bar for every day, which shows its number on hover. Empty when there are no days.
std::string trend_svg(std::span<const int64_t> per_day, Day first_day);

}  // namespace unflake
