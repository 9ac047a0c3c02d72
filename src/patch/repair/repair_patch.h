#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "model/repair.h"
#include "model/test.h"
#include "util/result.h"

namespace unflake {

// A time of an exact-timing test and the one that would hold.
struct NewBound {
  RepairPlace place;
  std::string api;  // of the call that takes it; empty: an assertion compares with it
  Duration old_value{}, new_value{};
  // Where the old one is not known: what runs say it must be.
  Duration least_old{}, most_old{};
};

struct PatchRequest {
  std::vector<HandOver> hand_overs;
  std::optional<GuessedWait> wait;
  // A time-out that ran out in the failing thread: who comes in order may still come late.
  std::optional<NewBound> patience = std::nullopt;
  Failure failure;
  Framework framework = Framework::command;
  std::string test;
  std::string root;                       // of the project: nothing outside of it is changed
  std::string compile_commands_folder;    // empty: found from the sources
  std::string build_folder;               // what is below it was generated; empty: the folder above
  std::string binary;                     // no source may be newer; empty: not checked
  std::vector<std::string> sources = {};  // where the test itself may be, beside all these places
  std::optional<NewBound> bound = std::nullopt;
  std::vector<RepairIdiom> idioms = {};  // empty: all
};

// Whether it is known how the sources of a repair are compiled.
bool has_compile_commands(const PatchRequest& request);

// What a maintainer would write, best idiom first; each was tried with the compiler, none was run.
// `why_not` gets a sentence for each idiom that is not offered. An error: not a single one is.
Result<std::vector<RepairPatch>> patches_for(const PatchRequest& request,
                                             std::vector<std::string>* why_not = nullptr);

// The header that a hand-over needs, as it goes into a project.
std::string_view unflake_sync_header();

}  // namespace unflake
