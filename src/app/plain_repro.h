#pragma once

#include <string>

#include "app/agent_command.h"
#include "app/project.h"
#include "model/detect_report.h"
#include "model/repro.h"
#include "search/detect/factor_search.h"

namespace unflake {

// The lines of a test from where its suite says that it begins to the end of its body, as far as
// its file can be found and read; without names when it cannot.
RecordedCleaner cleaner_of(const Test& test, const std::string& root);

// A repro of what was found, ready to be saved.
Repro repro_of(const OrderRelation& relation, const Conditions& conditions, OneTest& one);
Repro repro_of(const FactorFinding& finding, OneTest& one);

// What decides which factors can be tried here.
FactorFacts facts_of_machine();

struct PlainReplayOptions {
  std::string target;  // another one than was recorded; empty: that one
  int runs = 10;
  bool as_test = false, json = false;
  OneTestOptions one;
};

// Makes the runs of a repro that takes an order or a factor. Returns the exit code.
Result<int> replay_plain(const Project& project, const std::string& path, const Repro& repro,
                         const PlainReplayOptions& options, const std::string& command_line);

}  // namespace unflake
