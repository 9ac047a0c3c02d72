#pragma once

#include <functional>
#include <string>

#include "app/agent_command.h"
#include "app/project.h"
#include "model/events.h"
#include "model/repair.h"
#include "patch/repair/repair_patch.h"

namespace unflake {

struct PatchingOptions {
  Repro repro;
  std::string repro_path;
  std::string name;  // of the files, without an ending
  std::string target;
  std::string build_command;
  OneTestOptions one;
  Duration budget{std::chrono::minutes(10)};  // for the runs of one proof
  uint64_t seed = 1;
};

// What is asked of a patch for what has held in the running binary; none: there is nothing to
// patch.
std::optional<PatchRequest> patch_request(const RepairReport& report, const Repro& repro,
                                          const Project& project, const std::string& binary);

// From an order to a patch that is proven: source patches, the best idiom first, each rebuilt and
// run until one repairs the failure. That one is written to `.unflake/patches/NAME.patch`; those
// behind it are offered under the names of their idioms, and say that nobody has tried them. Adds
// to `report`. The signal that asked to stop; 0: none did.
using TellPatching = std::function<void(const std::string& line)>;
Result<int> write_patches(RepairReport& report, const Project& project,
                          const PatchingOptions& options, const PatchRequest& request,
                          Consumer& events, const TellPatching& tell);

// The patch that was proven for the failure of this repro, by the name of its file without an
// ending; none: there is no such file.
std::optional<ProposedPatch> proposed_patch(const Project& project, const std::string& name);

}  // namespace unflake
