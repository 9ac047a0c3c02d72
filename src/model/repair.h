#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/balance_report.h"
#include "model/proof.h"
#include "model/repro.h"
#include "model/site.h"
#include "stats/intervals.h"

// What a repair is, from the order that a search has shown to be enough to the patch that was
// proven: what search, patch, reports and commands hand to each other.
namespace unflake {

// A place of a repair, as plans name it and as an editor does.
struct RepairPlace {
  SiteName site;
  CodeSpot spot;
  std::string thread;  // that reaches it; empty: any
};

// `barrier` waits until `critical` has been passed `count` times.
struct HandOver {
  RepairPlace critical;  // passed when the statement there is over
  RepairPlace barrier;   // waits before the statement there
  uint64_t count = 1;
};

// A sleep or a timed wait that was all that kept the two in order.
struct GuessedWait {
  RepairPlace place;
  Duration asked{};
  bool is_sleep = false;
};

// How a patch makes one thread wait for another, the one that a maintainer likes best first.
enum class RepairIdiom {
  join,       // of a thread, future, latch or process that is there already
  notify,     // a wait on the condition variable or event that the code has
  poll,       // a bounded wait until what the assertion reads is true
  hand_over,  // UNFLAKE_REACHED and UNFLAKE_AWAIT of unflake_sync.h
  bound,      // another constant, for a test of how long something takes
  reset,      // of state that another test leaves behind
  delay,      // before the reading side: a stop-gap
};

std::string_view to_string(RepairIdiom idiom);

// Source that would be changed, and was not proven yet.
struct RepairPatch {
  RepairIdiom idiom = RepairIdiom::hand_over;
  std::string what;  // one sentence: what waits for what, and how
  std::string diff;  // `git apply` takes it
  std::vector<std::string> cautions;
  bool is_in_project = true;
};

}  // namespace unflake
