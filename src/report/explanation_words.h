#pragma once

#include <functional>
#include <string>
#include <vector>

#include "explain/explanation.h"
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

// The explanation in sentences; every report says the same. Safe to print, one line each.
struct ExplanationWords {
  std::string test;
  std::string failure;
  std::string cause;       // "async wait"
  std::string verdict;     // what it takes to fail; empty: it was not judged
  bool is_margin = false;  // nothing has to be repaired
  std::string advice;
  std::vector<std::string> evidence;
  std::string runner_up;             // "ordering: ..."; empty: there is none
  std::vector<std::string> story;    // what must come first, what waits for it, what was made late
  std::vector<std::string> figures;  // how often, how late
  std::vector<std::string> plan;     // as `unflake inject` takes it
  std::vector<std::string> notes;
  std::vector<Quotation> quotations;
};

ExplanationWords words_of(const ExplanationReport& report);

// An explanation for a terminal, with the source lines that it mentions.
std::string explanation_text(const ExplanationReport& report, const Style& style);

}  // namespace unflake
