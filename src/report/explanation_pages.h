#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "explain/explanation.h"
#include "model/repair.h"
#include "model/repro.h"
#include "report/layout.h"

namespace unflake {

// The source line, without its line feed; empty when there is no such file or line.
using SourceReader = std::function<std::string(const std::string& file, int line)>;

// All that the reports of an explanation are made from.
struct ExplanationReport {
  const Repro& repro;
  const Explanation& explanation;
  const ObservedRun* passing = nullptr;
  const ObservedRun* failing = nullptr;
  std::vector<std::string> notes;  // how the runs were made, where that matters
  SourceReader source;
  std::optional<ProposedPatch> patch{};  // that `unflake repair` has written
  // Of the repro's file, where the runs that are shown were made under another plan.
  std::optional<Plan> recorded_plan{};
};

struct QuotedLine {
  int number = 0;
  std::string text;  // safe to print
  bool is_meant = false;
};

// A place with some lines around it.
struct Quotation {
  std::string title;  // "critical point: queue.cc:57 in Queue::push"
  std::vector<QuotedLine> lines;
};

// As its author would say it: without namespaces, template arguments, and what a compiler calls a
// lambda.
std::string spoken_function(std::string name);

// The explanation in sentences; every report says the same. Safe to print, one line each.
struct ExplanationWords {
  std::string test;
  std::string failure;
  std::string summary;     // in one or two sentences; empty: nothing can be said
  std::string cause;       // "async wait"
  std::string verdict;     // what it takes to fail; empty: it was not judged
  bool is_margin = false;  // nothing has to be repaired
  std::string advice;
  std::vector<std::string> evidence;
  std::string runner_up;           // "ordering: ..."; empty: there is none
  std::vector<std::string> story;  // what must come first, what waits for it, what was made late
  std::vector<std::string> experiments;  // what was tried, and what came of it
  std::vector<std::string> figures;      // how often, how late
  std::vector<std::string> plan;         // as `unflake inject` takes it
  std::vector<std::string> notes;
  std::vector<Quotation> quotations;
};

ExplanationWords words_of(const ExplanationReport& report);

// What the test's author would say, without files and lines: what it relies on, and how little it
// takes to break that.
std::string first_sentence(const ExplanationReport& report);

// An explanation for a terminal, with the source lines that it mentions.
std::string explanation_text(const ExplanationReport& report, const Style& style);

// How often the test fails at which delay, with 95 % intervals and the slack as a band. Empty when
// nothing was measured.
std::string dose_svg(const Repro& repro);

// An explanation as one HTML file that needs nothing else: no script, no network, light and dark.
std::string explanation_html(const ExplanationReport& report);

// What both drawings of a comparison share, so that they can be laid over each other.
struct TimelineFrame {
  Duration from{}, to{};
  std::vector<std::string> lanes;  // names of threads, or "pool-worker x 298" of many of a kind
  std::map<std::string, std::string> shared;  // the lane of each of those, by the thread's name
  std::map<std::string, std::string> roles;   // of a lane, where it is known
  size_t threads_left_out = 0;

  const std::string& lane_of(const std::string& thread) const;
};

// The whole of both runs; the threads that the explanation names are never left out.
TimelineFrame whole_frame(const ExplanationReport& report);

// The time around the pair; the same as the whole where a closer look shows no more.
TimelineFrame frame_around_pair(const ExplanationReport& report, const TimelineFrame& whole);

struct Timeline {
  std::string svg;
  size_t drawn = 0, left_out = 0;  // calls
};

enum class WhichRun { passing, failing };

// A lane per thread with its calls, the plan's delays, the failure and the pair.
Timeline timeline_svg(const ExplanationReport& report, WhichRun which, const TimelineFrame& frame);

// A step between marks on an axis of this length: 1, 2 or 5 times a power of ten, 4 to 10 of them.
double axis_step(double length);

}  // namespace unflake
