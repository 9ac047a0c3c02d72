#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"
#include "model/plan.h"
#include "stats/plausibility.h"

namespace unflake {

// The failure that is looked for; with nothing set, any.
struct Wanted {
  std::string signature;
  // Counts as the same by file and line or file and expression, too, or when all that is known of
  // it agrees.
  std::optional<Failure> failure;

  bool anything() const { return signature.empty() && !failure; }
  bool matches(const Outcome& outcome) const;
};

struct DelayLimits {
  Duration least{std::chrono::milliseconds(100)};
  Duration most{std::chrono::seconds(10)};
  Duration cheap{std::chrono::seconds(2)};  // longer ones are put last
};

// In which order candidates are tried. Chosen by measurement: see docs/EVALUATION.md.
enum class Order {
  turns,       // all visits first, threads in turn, bursts first, each site once before repeats
  nearest,     // FlakeEcho: the nearest before the failure point first
  appearance,  // as the run came to them
  random,
};

std::optional<Order> order_from(std::string_view name);
std::string_view to_string(Order order);

struct HuntOptions {
  Wanted wanted;
  Duration budget{std::chrono::minutes(5)};       // for everything, the slack included
  Duration timeout{std::chrono::minutes(10)};     // of a profiling run
  Duration time_offset{std::chrono::seconds(2)};  // what a run may take beyond what is expected
  std::optional<Duration> initial_delay;          // FlakeRake's initial sleep, 5 s in the paper
  int profile_runs = 5;
  DelayLimits delays;
  Order order = Order::turns;
  size_t most_candidates = 0;  // of guided, as FlakeEcho's k; 0: all
  std::vector<std::string> groups_off;
  std::vector<std::string> extra_functions;
  bool system_calls = false;
  uint64_t seed = 1;
  std::set<std::string> known_signatures;  // of failures that the test has shown before
  // How late the machine is, asked once, when there is something to judge by it. Without it every
  // machine counts as quiet.
  std::function<std::optional<MachineLateness>()> measure_lateness;
};

// A plan with the agent, without interventions, as quiet as a confirming run.
Plan base_plan(const HuntOptions& options);

}  // namespace unflake
