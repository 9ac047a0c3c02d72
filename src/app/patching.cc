#include "app/patching.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "app/proving.h"
#include "report/repair_text.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t largest_patch = size_t{1} << 20;

ProvingOptions proving_options(const PatchingOptions& options, const RepairPatch& patch) {
  ProvingOptions proving;
  proving.repro = options.repro;
  proving.repro_path = options.repro_path;
  proving.patch = patch.diff;
  proving.name = std::string(to_string(patch.idiom));
  proving.build_command = options.build_command;
  proving.target = options.target;
  proving.one = options.one;
  proving.one.target.words.clear();
  proving.proof.budget = options.budget;
  proving.proof.seed = options.seed;
  proving.build.jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return proving;
}

// "join: REASON" of each idiom, those with the same reason together.
std::vector<std::string> refusals(const std::vector<std::string>& why_not) {
  std::vector<std::pair<std::string, std::string>> reasons;  // and the idioms
  for (const std::string& line : why_not) {
    const size_t colon = std::min(line.find(": "), line.size());
    const std::string idiom = line.substr(0, colon), reason = line.substr(colon);
    const auto known =
        std::ranges::find(reasons, reason, [](const auto& one) { return one.first; });
    if (known == reasons.end())
      reasons.emplace_back(reason, idiom);
    else
      known->second += " or " + idiom;
  }
  std::vector<std::string> notes;
  for (const auto& [reason, idioms] : reasons) notes.push_back("no patch by " + idioms + reason);
  return notes;
}

std::string patch_path(const Project& project, const std::string& name) {
  return project.path("patches/" + name + ".patch");
}

Result<std::string> write_patch(const Project& project, const std::string& name,
                                const std::string& text) {
  make_folder(project);
  const std::string path = patch_path(project, name);
  if (const auto ready = prepare_output_file(path); !ready) return ready.error();
  if (const auto written = replace_file(path, text); !written) return written.error();
  return path_from_here(path);
}

}  // namespace

std::optional<PatchRequest> patch_request(const RepairReport& report, const Repro& repro,
                                          const Project& project, const std::string& binary) {
  PatchRequest request;
  request.wait = report.wait;
  request.failure = repro.failure;
  request.framework = repro.framework;
  request.test = repro.test.name;
  request.root = project.root;
  request.binary = binary;
  if (!report.repairs.empty()) {
    request.hand_overs = report.repairs.front().hand_overs;
    return request;
  }
  if (!report.exact_timing || !report.exact_timing->proposed) return std::nullopt;
  const ExactTiming& timing = *report.exact_timing;
  NewBound bound;
  if (timing.constant) {
    bound = {*timing.constant, timing.constant->site.api, timing.asked, *timing.proposed};
  } else {
    bound.place.spot = {repro.failure.file, repro.failure.line, repro.failure.function};
    bound.new_value = *timing.proposed;
    bound.least_old = timing.median + timing.passes;
    bound.most_old = timing.median + timing.fails;
  }
  request.bound = bound;
  return request;
}

std::optional<ProposedPatch> proposed_patch(const Project& project, const std::string& name) {
  const std::string path = patch_path(project, name);
  std::ifstream file(path, std::ios::binary);
  if (name.empty() || !file) return std::nullopt;
  std::string text(largest_patch, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return read_patch_file(path_from_here(path), text);
}

Result<int> write_patches(RepairReport& report, const Project& project,
                          const PatchingOptions& options, const PatchRequest& request,
                          Consumer& events, const TellPatching& tell) {
  std::vector<std::string> why_not;
  const auto patches = patches_for(request, &why_not);
  for (std::string& note : refusals(why_not)) report.notes.push_back(std::move(note));
  if (!patches) {
    report.notes.push_back("no patch was written: " + to_string(patches.error()));
    return 0;
  }
  bool is_proven = false;
  for (const RepairPatch& patch : *patches) {
    TriedPatch tried{patch, "", std::nullopt, ""};
    if (!is_proven) {
      tell(fmt::format("patch by {}: {}", to_string(patch.idiom), patch.what));
      Proving proving(project, proving_options(options, patch), events, tell);
      auto proof = proving();
      if (proving.stop_signal() != 0) return proving.stop_signal();
      if (proof)
        tried.proof = std::move(*proof);
      else
        tried.why_not = to_string(proof.error());
    }
    const bool repairs = tried.proof && tried.proof->proof.verdict == Proof::Verdict::repaired;
    const bool is_offered = is_proven && !repairs;
    if (repairs || is_offered) {
      const std::string name =
          repairs ? options.name : options.name + "-" + std::string(to_string(patch.idiom));
      auto file =
          write_patch(project, name, repairs ? patch_file_text(patch, *tried.proof) : patch.diff);
      if (!file) return file.error();
      tried.file = *file;
    }
    is_proven = is_proven || repairs;
    report.patches.push_back(std::move(tried));
  }
  return 0;
}

}  // namespace unflake
