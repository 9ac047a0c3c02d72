#include "app/proving.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "report/repair_text.h"
#include "report/terminal.h"
#include "suite/adapter.h"
#include "trace/program_code.h"
#include "util/files.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* before_name = "before";
constexpr const char* after_name = "after";

bool is_stopped(const Error& error) {
  return error.what == "stopped";
}

// The line of the check as it is now: where it was, or the only one that reads the same.
int line_reading(const std::vector<std::string>& lines, int line, const std::string& text) {
  const auto reads = [&](int number) {
    return number > 0 && number <= static_cast<int>(lines.size()) &&
           trim(lines[static_cast<size_t>(number) - 1]) == text;
  };
  if (text.empty() || reads(line)) return line;
  int only = 0;
  for (int i = 1; i <= static_cast<int>(lines.size()); ++i) {
    if (!reads(i)) continue;
    if (only != 0) return 0;
    only = i;
  }
  return only;
}

}  // namespace

Proving::Proving(const Project& project, ProvingOptions options, Consumer& events, Tell tell)
    : project_(project), options_(std::move(options)), events_(events), tell_(std::move(tell)) {
  const Repro& repro = options_.repro;
  report_.test = repro.test;
  report_.repro = options_.repro_path;
  report_.headline = headline(repro.failure);
  report_.signature = repro.signature;
  report_.change = options_.name;
}

int Proving::stop_signal() const {
  for (const Side* side : {&before_, &after_})
    if (side->one && side->one->stop_signal() != 0) return side->one->stop_signal();
  return interrupts_.stop_signal();
}

Result<ProofReport> Proving::operator()() {
  auto launcher = LocalExecutor::create({}, interrupts_);
  if (!launcher) return launcher.error();
  launcher_ = std::move(*launcher);
  const std::string target = recorded_target(project_, options_.repro, options_.target);
  auto recipe = find_recipe(target, options_.build_command, project_.root);
  if (!recipe) return recipe.error();
  recipe_ = std::move(*recipe);
  report_.build_system = to_string(recipe_.system);
  auto work = WorkFolder::make();
  if (!work) return work.error();
  work_.emplace(std::move(*work));
  if (options_.keep) {
    work_->keep();
    report_.kept = work_->path();
  }
  if (auto copied = copy_sources(); !copied) return copied.error();
  if (auto built = build_both(); !built) return built.error();
  if (report_.proof.verdict == Proof::Verdict::not_built) return report_;
  if (auto found = find_tests(); !found) return found.error();
  if (!after_.one) return report_;
  auto proof = prove_all();
  if (!proof) return proof.error();
  report_.proof = std::move(*proof);
  return report_;
}

Result<void> Proving::copy_sources() {
  tree_ = source_tree_of(recipe_.sources, *launcher_);
  const std::string before = work_->path(before_name), after = work_->path(after_name);
  if (options_.from.empty()) {
    if (tree_.is_dirty)
      report_.notes.push_back("changes that are not committed are part of both builds");
    tell_(fmt::format("copying {}", printable(tree_.root)));
    for (const std::string& to : {before, after})
      if (auto copied = copy_tree(tree_, to, *launcher_); !copied) return copied.error();
    if (auto applied = apply_patch(after, options_.patch, *launcher_); !applied) {
      Error error = applied.error();
      if (error.where.empty()) error.where = printable(options_.name);
      return error;
    }
  } else {
    if (tree_.is_dirty)
      report_.notes.push_back("changes that are not committed are part of neither build");
    for (const auto& [revision, to] :
         {std::pair{&options_.from, &before}, std::pair{&options_.to, &after}}) {
      const auto commit = commit_named(tree_, *revision, *launcher_);
      if (!commit) return commit.error();
      if (auto copied = copy_commit(tree_, *commit, *to, *launcher_); !copied)
        return copied.error();
    }
    auto diff = diff_between(tree_, options_.from, options_.to, *launcher_);
    if (!diff) return diff.error();
    options_.patch = std::move(*diff);
    if (trim(options_.patch).empty())
      return usage_error("the two commits have the same files", options_.name);
  }
  changes_ = LineChanges(options_.patch);
  return {};
}

Result<void> Proving::build(Side& side, const std::string& name, const std::string& what) {
  tell_(fmt::format("building {} ({})", what, report_.build_system));
  const Builder builder(recipe_, options_.build, *launcher_);
  auto built = builder(tree_.root, work_->path(name), work_->path(name + "-build"));
  if (!built) return built.error();
  side.built = std::move(*built);
  return {};
}

Result<void> Proving::build_both() {
  if (auto built = build(before_, before_name, "without the patch"); !built) {
    Error error = built.error();
    if (is_stopped(error)) return error;
    cannot_build_ = true;
    error.what = "without the patch: " + error.what;
    if (error.next.empty())
      error.next = "it has nothing to do with the patch; --build 'COMMAND' says how it is built";
    return error;
  }
  report_.built_before = before_.built.took;
  if (auto built = build(after_, after_name, "with the patch"); !built) {
    if (is_stopped(built.error())) return built.error();
    report_.proof = hollow(Proof::Verdict::not_built, built.error().what);
    return {};
  }
  report_.built_after = after_.built.took;
  return {};
}

Proof Proving::hollow(Proof::Verdict verdict, std::string why) const {
  Proof proof;
  proof.verdict = verdict;
  proof.why = std::move(why);
  return proof;
}

// The project may be a part of the repository.
std::string Proving::code_root(const Side& side) const {
  const std::string below = path_below(project_.root, tree_.root);
  return below.empty() || below == "." ? side.built.source : side.built.source + "/" + below;
}

Result<std::unique_ptr<OneTest>> Proving::find_test(const Side& side) {
  OneTestOptions one = options_.one;
  one.code_root = code_root(side);
  return find_recorded_test(project_, options_.repro, side.built.target, one);
}

Result<void> Proving::find_tests() {
  for (auto& [side, what] :
       {std::pair{&before_, "without the patch"}, std::pair{&after_, "with the patch"}}) {
    auto one = find_test(*side);
    if (!one && side == &after_ && stop_signal() == 0) {
      report_.proof = hollow(
          Proof::Verdict::not_repaired,
          "the test is not in the program that was built with the patch: " + one.error().what);
      return {};
    }
    if (!one) return one.error();
    side->one = std::move(*one);
    side->one->events().add(events_);
    if (auto found = find_plan(*side, what); !found) return found.error();
    if (stop_signal() != 0) return internal_error("stopped");
  }
  return {};
}

Result<void> Proving::find_plan(Side& side, const std::string& what) {
  auto plan = locate_plan(*side.one, options_.repro);
  if (!plan) return plan.error();
  side.plan = std::move(*plan);
  for (const Relocated& note : side.plan.relocation.notes)
    report_.notes.push_back(what + ", " + note.text);
  return {};
}

CheckAfter Proving::find_check() {
  const Repro& repro = options_.repro;
  if (repro.failure.line <= 0 || repro.failure.file.empty()) return {};
  const auto& lines = before_.plan.code.source(repro.failure.file);
  check_before_ =
      lines.empty() ? 0 : line_reading(lines, repro.failure.line, repro.failing_line.text);
  return check_after(changes_, repro.failure.file, check_before_, lines);
}

namespace {

// A patch moves the lines behind it, and what fails there on both sides is one failure.
std::string moved_signature(const Outcome& outcome, const LineChanges& changes) {
  if (outcome.failures.empty()) return outcome.signature;
  Failure moved = outcome.failures.front();
  if (moved.file.empty() || moved.line <= 0) return outcome.signature;
  const int line = changes.line_after(moved.file, moved.line);
  if (line <= 0 || line == moved.line) return outcome.signature;
  moved.line = line;
  return signature_of(moved);
}

}  // namespace

ProofSide Proving::proof_side(Side& side, int check_line) {
  const auto is_recorded = [this, &side](const Outcome& outcome) {
    const bool hangs = options_.repro.outcome == OutcomeKind::timeout;
    return outcome.failed() && ((hangs && outcome.kind == OutcomeKind::timeout) ||
                                is_same_mistake(options_.repro, outcome, side.plan.code));
  };
  ProofSide proof{side.one->executor(),
                  side.one->shared_test(),
                  side.one->events(),
                  side.plan.relocation.plan,
                  gone_from(side.plan.relocation),
                  is_recorded,
                  {},
                  {},
                  {},
                  ""};
  if (&side == &before_)
    proof.signature = [this](const Outcome& outcome) { return moved_signature(outcome, changes_); };
  if (check_line > 0) {
    SiteName check;
    check.file = base_name(options_.repro.failure.file);
    check.line = check_line;
    proof.check = check;
  }
  auto whole = in_one_process(side.one->all_tests(), side.one->all_tests());
  if (!whole)
    proof.why_not_whole = whole.error().what;
  else if (whole->is_single())
    proof.why_not_whole = "it is the only test of its program";
  else
    proof.whole = std::move(*whole);
  return proof;
}

Result<Proof> Proving::prove_all() {
  const CheckAfter check = find_check();
  ProofOptions proof = options_.proof;
  proof.repro = options_.repro;
  proof.timeout = before_.one->timeout();
  proof.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  proof.wanted = options_.repro.failure;
  if (check.state == CheckAfter::State::changed) proof.changed_check = check.text;
  if (check.line > 0) proof.wanted.line = check.line;
  ProofSide before = proof_side(before_, check_before_);
  ProofSide after = proof_side(after_, check.line);
  return prove(before, after, proof);
}

namespace {

constexpr size_t largest_patch = size_t{1} << 20;
constexpr Duration patient_enough = std::chrono::seconds(10);  // for whoever waits for what comes

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
  proving.one.slots = slots_of_proof;
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
  if (report.ran_out)
    request.patience = NewBound{report.ran_out->place, report.ran_out->place.site.api,
                                report.ran_out->asked, patient_enough};
  if (!report.repairs.empty()) {
    request.hand_overs = report.repairs.front().hand_overs;
    return request;
  }
  const bool was_searched = report.wait || !report.dropped.empty();
  if (!report.exact_timing && report.deadlock.empty() && was_searched) {
    // No order is known to help, but whoever asks again needs none, and a wait that ran out may
    // have to be more patient.
    request.idioms = {RepairIdiom::poll, RepairIdiom::bound};
    if (report.wait && !report.wait->is_sleep)
      request.bound = NewBound{report.wait->place, report.wait->place.site.api, report.wait->asked,
                               patient_enough};
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

namespace {

// How the sources are compiled, where nobody has let CMake write it down: it is asked to, in a
// folder of its own, which has to be kept as long as patches are made.
std::optional<WorkFolder> ask_for_compile_commands(PatchRequest& request,
                                                   const PatchingOptions& options,
                                                   Interrupts& interrupts,
                                                   const TellPatching& tell) {
  const auto recipe = find_recipe(request.binary, options.build_command, request.root);
  if (!recipe || recipe->system != BuildRecipe::System::cmake || has_compile_commands(request))
    return std::nullopt;
  auto launcher = LocalExecutor::create({}, interrupts);
  auto work = WorkFolder::make();
  if (!launcher || !work) return std::nullopt;
  tell("there is no compile_commands.json: asking CMake for one, beside the build");
  const std::string folder = work->path("commands");
  if (!Builder(*recipe, {}, **launcher).compile_commands(folder)) return std::nullopt;
  request.compile_commands_folder = folder;
  request.build_folder = recipe->build;
  return std::move(*work);
}

}  // namespace

Result<int> write_patches(RepairReport& report, const Project& project,
                          const PatchingOptions& options, PatchRequest request, Consumer& events,
                          const TellPatching& tell) {
  Interrupts interrupts;
  const auto commands = ask_for_compile_commands(request, options, interrupts, tell);
  if (interrupts.stop_signal() != 0) return interrupts.stop_signal();
  std::vector<std::string> why_not;
  const auto patches = patches_for(request, &why_not);
  for (std::string& note : refusals(why_not)) report.notes.push_back(std::move(note));
  if (!patches) {
    if (why_not.empty())
      report.notes.push_back("no patch was written: " + to_string(patches.error()));
    return 0;
  }
  bool is_proven = false, cannot_build = false;
  for (const RepairPatch& patch : *patches) {
    TriedPatch tried{patch, "", std::nullopt, ""};
    if (cannot_build) {
      tried.why_not = "the program cannot be built without the patch either";
    } else if (!is_proven) {
      tell(fmt::format("patch by {}: {}", to_string(patch.idiom), patch.what));
      Proving proving(project, proving_options(options, patch), events, tell);
      auto proof = proving();
      if (proving.stop_signal() != 0) return proving.stop_signal();
      cannot_build = proving.cannot_build();
      if (proof)
        tried.proof = std::move(*proof);
      else
        tried.why_not = to_string(proof.error());
    }
    if (tried.is_proven()) {
      auto file = write_patch(project, options.name, patch_file_text(patch, *tried.proof));
      if (!file) return file.error();
      tried.file = *file;
    }
    is_proven = is_proven || tried.is_proven();
    report.patches.push_back(std::move(tried));
  }
  return 0;
}

}  // namespace unflake
