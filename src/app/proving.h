#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/agent_command.h"
#include "app/project.h"
#include "model/events.h"
#include "model/repair.h"
#include "patch/repair/repair_patch.h"
#include "rebuild/build_recipe.h"
#include "rebuild/changed_lines.h"
#include "rebuild/source_copy.h"
#include "search/repair/proof.h"

namespace unflake {

// The proof knows when it may use more than one.
inline constexpr size_t slots_of_proof = 4;

// What a proof compares, and how.
struct ProvingOptions {
  Repro repro;
  std::string repro_path;
  std::string patch;     // the diff itself; with revisions, empty
  std::string name;      // of the patch, for people
  std::string from, to;  // revisions; empty: the patch against the work tree
  std::string build_command;
  std::string target;  // instead of the recorded one
  BuildLimits build;
  ProofOptions proof;  // without what the builds tell
  OneTestOptions one;
  bool keep = false;
};

// Builds the program without a change and with it, each in a copy of the sources, and proves
// whether the change repairs the recorded failure.
class Proving {
 public:
  using Tell = std::function<void(const std::string& line)>;
  // `events` gets every run and step; `tell` what happens before there are any.
  Proving(const Project& project, ProvingOptions options, Consumer& events, Tell tell);

  Result<ProofReport> operator()();
  // The signal that asked unflake to stop; 0: none did.
  int stop_signal() const;
  // There is nothing to compare with: the program cannot be built without any patch.
  bool cannot_build() const { return cannot_build_; }

 private:
  struct Side {
    Built built;
    std::unique_ptr<OneTest> one;
    LocatedPlan plan;
  };

  Result<void> copy_sources();
  Result<void> build_both();
  Result<void> build(Side& side, const std::string& name, const std::string& what);
  Result<void> find_tests();
  Result<std::unique_ptr<OneTest>> find_test(const Side& side);
  Result<void> find_plan(Side& side, const std::string& what);
  CheckAfter find_check();
  ProofSide proof_side(Side& side, int check_line);
  Result<Proof> prove_all();
  std::string code_root(const Side& side) const;
  Proof hollow(Proof::Verdict verdict, std::string why) const;

  const Project project_;
  ProvingOptions options_;
  Consumer& events_;
  const Tell tell_;
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> launcher_;
  std::optional<WorkFolder> work_;
  BuildRecipe recipe_;
  Sources tree_;
  LineChanges changes_{""};
  Side before_, after_;
  bool cannot_build_ = false;
  int check_before_ = 0;  // the line of the check that failed, without the patch
  ProofReport report_;
};

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
// behind it are only told, as what nobody has tried: a file would look like a repair. Adds to
// `report`. The signal that asked to stop; 0: none did.
using TellPatching = std::function<void(const std::string& line)>;
Result<int> write_patches(RepairReport& report, const Project& project,
                          const PatchingOptions& options, PatchRequest request, Consumer& events,
                          const TellPatching& tell);

// The patch that was proven for the failure of this repro, by the name of its file without an
// ending; none: there is no such file.
std::optional<ProposedPatch> proposed_patch(const Project& project, const std::string& name);

}  // namespace unflake
