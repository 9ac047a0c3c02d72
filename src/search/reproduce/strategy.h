#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "search/reproduce/hunt.h"

namespace unflake {

// A named way to look for a plan under which a test fails. It asks the hunt for runs until it has
// nothing more to try or the hunt is over.
struct Strategy {
  std::string_view name;
  std::string_view about;  // one line, for --help and for what is told when it begins
  void (*search)(Hunt& hunt);
  bool by_default;              // whether a search that names none comes to it
  bool is_last_resort = false;  // not even then where control has covered it
};

// All of them, in the order in which the default widens the search.
std::span<const Strategy> strategies();
const Strategy* find_strategy(std::string_view name);

// Tries them one after the other until one has found a flaw or the hunt is over. The hunt must have
// been prepared. What was confirmed is refined at once, but told before.
void search(Hunt& hunt, std::span<const Strategy* const> chosen,
            const std::function<void()>& on_confirmed = {});

// Makes what was found as small as it can be, measures its slack and judges it by that.
void refine(Hunt& hunt);

// Every schedule there is was run, and the test never waits for time: no delay shows another order.
bool is_proven_sound(const Hunt& hunt);

// Threads were late everywhere under control, and nobody has seen a failure to go on for.
bool is_covered_under_control(const Hunt& hunt);

// What `shake` does to the machine.
std::vector<Conditions> scarce_conditions();

void search_schedules(Hunt& hunt);
void search_more_schedules(Hunt& hunt);
void search_guided(Hunt& hunt);
void search_lateness(Hunt& hunt);
void search_more_lateness(Hunt& hunt);
void search_difference(Hunt& hunt);
void search_bisection(Hunt& hunt);
void search_one_by_one(Hunt& hunt);
void search_ddmin(Hunt& hunt);
void search_functions(Hunt& hunt);
void search_pairs(Hunt& hunt);
void search_shake(Hunt& hunt);
void search_rerun(Hunt& hunt);

// A function of project code that was entered while another thread was alive.
struct ConcurrentFunction {
  std::vector<Place> entries;  // one for each thread that entered it, by when it first did
  std::string file;            // as sites name it
  std::vector<int> lines;
};

// From a few runs of their own. More than the functions that really ran side by side, as FlakeSync
// has it: which pairs did is not asked. By when they were first entered.
std::vector<ConcurrentFunction> find_concurrent_functions(Hunt& hunt, int runs = 3);

}  // namespace unflake
