#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "model/plan.h"
#include "model/test.h"
#include "stats/plausibility.h"
#include "stats/rates.h"

namespace unflake {

// How often the test fails when the plan makes it this late in all.
struct Dose {
  Duration delay{};
  Count failures;
  bool operator==(const Dose&) const = default;
};

// The least lateness that makes the test fail in more than half of its runs is between the two. A
// thread that is delayed several times on its way to the failure is as late as the sum of
// its delays.
struct Slack {
  Duration passes{};  // the longest lateness under which it did not
  Duration fails{};   // the shortest one under which it did
  bool operator==(const Slack&) const = default;
};

// What a site looks like in the source, so that it can be found again after an edit.
struct SiteContext {
  std::string function;          // qualified, without parameters
  int lines_into_function = -1;  // -1: not known
  std::string text;              // the source line, trimmed
  std::string text_before, text_after;
  bool operator==(const SiteContext&) const = default;
};

// A test that resets what others left, and where it is defined: what a repair would call.
struct RecordedCleaner {
  std::string name;
  std::string file;
  int first_line = 0, last_line = 0;
  std::vector<std::string> body;
  bool operator==(const RecordedCleaner&) const = default;
};

// The tests that run before the one that fails, in the order of a suite.
struct RecordedOrder {
  std::vector<std::string> before;  // names; empty: it fails when it runs alone
  Arrangement arrangement;
  std::vector<std::string> state_setters;  // after which it passes
  std::vector<RecordedCleaner> cleaners;   // that undo what those before it did
  bool operator==(const RecordedOrder&) const = default;
};

// A failure that comes back on demand: what `unflake reproduce` writes and `unflake replay` reads.
struct Repro {
  TestId test;
  Framework framework = Framework::command;
  std::string target_path;               // relative to the project's root when inside it
  std::vector<std::string> target_argv;  // for a plain command; else arguments for the executable

  OutcomeKind outcome = OutcomeKind::fail;
  Failure failure;
  std::string signature;
  SiteContext failing_line;  // the source text where the failure is; empty when it has no line

  Plan plan;
  std::vector<SiteContext> sites;   // where the plan's interventions are, in their order
  std::vector<SiteContext> spawns;  // where their threads are started; empty ones for `main`
  uint64_t digest = 0;              // of a run under the plan's schedule
  std::string not_repeatable;       // the call because of which such runs may differ
  Conditions conditions;
  std::optional<RecordedOrder> order;  // it depends on what ran before
  std::string factor;  // of its surroundings that the conditions change: "time zone"
  // The test fails by itself in most runs, and under the plan it does not: the plan shows the order
  // that the test relies on.
  bool passes_under_plan = false;

  Count with_plan;     // runs with this failure, of fresh runs under the plan
  Count without_plan;  // the same without interventions, agent loaded
  // With the same delays while the engine decides who goes on. Known where on free cores chance has
  // its say, too: then it is what `replay` runs.
  std::optional<Count> under_control;
  int candidates = 0;  // plans tried until this one was confirmed, itself included
  std::optional<Slack> slack;
  std::vector<Dose> doses;  // by delay
  Duration timeout{};       // of one run under the plan

  std::optional<Plausibility> plausibility;         // nothing: it was not judged
  std::optional<MachineLateness> machine_lateness;  // that it was judged by, where it was found
  // Somebody has met the failure without the plan: it was asked for, history knows it, or a run
  // without delays has shown it.
  bool was_seen = false;

  std::string strategy;
  std::string reason;  // why this plan was tried, in words
  uint64_t seed = 0;
  int search_runs = 0;
  std::string commit, machine, unflake_version;
  std::chrono::system_clock::time_point found;

  // It takes an order or a factor, and no agent.
  bool is_plain() const { return order.has_value() || !factor.empty(); }
  // The engine decides who goes on. No free run has shown it.
  bool is_under_control() const { return plan.schedule.has_value(); }
  // It takes a machine that stands still, and nobody has seen it: the test is sound.
  bool is_margin() const { return plausibility == Plausibility::margin && !was_seen; }
};

}  // namespace unflake
