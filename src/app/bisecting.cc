#include "app/bisecting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/repro_file.h"
#include "report/detect_text.h"
#include "search/detect/commit_bisection.h"
#include "search/repair/sampled_schedules.h"
#include "search/reproduce/strategy.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr Duration longest_hunt = 2min;
constexpr int most_plain_runs = 100;      // at the bad end, when nothing makes it fail
constexpr int enough_plain_failures = 3;  // of them, to know the rate
constexpr double error_of_look = 0.03, error_of_thorough_look = 0.001;
constexpr int schedules_of_look = 12, schedules_of_thorough_look = 40;
constexpr int schedules_beside_plan = 8;  // of a thorough look, where the plan has shown nothing
constexpr Duration longest_schedules = 30s;
constexpr Duration plausible_lateness = 1s;

bool was_stopped(const Error& error) {
  return error.what == "stopped";
}

// What a build system keeps track of itself is built again in place, headers included.
bool builds_in_place(const BuildRecipe& recipe) {
  return recipe.system == BuildRecipe::System::cmake || recipe.system == BuildRecipe::System::meson;
}

Repro of_test(OneTest& one) {
  Repro repro;
  const TargetRecord target = record_of(one.target(), one.test(), one.project());
  repro.test = one.test().id;
  repro.framework = target.framework;
  repro.target_path = target.path;
  repro.target_argv = target.argv;
  repro.timeout = one.timeout();
  return repro;
}

// The one that comes back most surely, and in free runs: a recorded schedule belongs to one build.
const Found* best_of(const std::vector<Found>& found) {
  const Found* best = nullptr;
  const auto worth = [](const Found& one) {
    return std::pair(!one.trial.plan.schedule, one.with_plan.rate());
  };
  for (const Found& one : found)
    if (!one.is_margin() && !one.passes_under_plan &&
        (best == nullptr || worth(one) > worth(*best)))
      best = &one;
  return best;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string words_of(const Repro& repro) {
  DetectedTest described;
  described.perturbed = repro;
  if (slack_of(repro)) return "fails when " + perturbed_words(described);
  return fmt::format("fails when a thread is late ({} of {} runs)", repro.with_plan.hits,
                     repro.with_plan.runs);
}

bool is_missing_test(const Error& error) {
  return error.what.starts_with("no test matches") || error.what == "the target has no tests";
}

}  // namespace

Bisecting::Bisecting(OneTest& one, BisectingOptions options, Tell tell)
    : now_(one),
      options_(std::move(options)),
      tell_(std::move(tell)),
      budget_(one.executor(), options_.budget),
      repro_(of_test(one)) {
  report_.test = repro_.test;
  report_.from = options_.from;
  report_.to = options_.to;
}

int Bisecting::stop_signal() const {
  if (stopped_by_ != 0) return stopped_by_;
  if (looked_at_ != nullptr && looked_at_->stop_signal() != 0) return looked_at_->stop_signal();
  return now_.stop_signal();
}

bool Bisecting::has_ended() const {
  return error_ || stop_signal() != 0 || budget_.is_spent();
}

Result<void> Bisecting::prepare() {
  const std::string target = recorded_target(now_.project(), repro_, "");
  auto recipe = find_recipe(target, options_.build_command, now_.project().root);
  if (!recipe) return recipe.error();
  recipe_ = std::move(*recipe);
  tree_ = source_tree_of(recipe_.sources, now_.launcher());
  if (!tree_.is_git)
    return usage_error("the sources are not in a git repository", printable(tree_.root),
                       "--bisect needs the commits between two revisions");
  const auto commits = commits_between(tree_, options_.from, options_.to, now_.launcher());
  if (!commits) return commits.error();
  for (const ListedCommit& one : *commits) report_.commits.push_back({one.id, one.subject});
  if (tree_.is_dirty) report_.notes.push_back("changes that are not committed are in no build");
  if (has_submodules(tree_, now_.launcher()))
    report_.notes.push_back("submodules stay as they are checked out now, in every build");
  auto work = WorkFolder::make();
  if (!work) return work.error();
  work_.emplace(std::move(*work));
  build_folder_ = work_->path("build");
  return copy_commit(tree_, report_.commits.back().id, work_->path("sources"), now_.launcher());
}

Result<BisectReport> Bisecting::operator()() {
  if (auto ready = prepare(); !ready) return ready.error();
  tell_(fmt::format("{} commits, about {} builds in turn", report_.commits.size() - 1,
                    2 + static_cast<int>(std::ceil(std::log2(report_.commits.size())))));
  BisectedBuilds builds;
  builds.commits = report_.commits.size();
  builds.look = [this](size_t commit, bool thoroughly) { return look(commit, thoroughly); };
  builds.has_ended = [this] { return has_ended(); };
  builds.tell = [this](const CommitBisection::Step& step) { tell_step(step); };
  report_.bisection = find_first_failing(builds);
  if (error_) return *error_;
  report_.runs = report_.bisection.runs();
  report_.elapsed = budget_.elapsed();
  return report_;
}

void Bisecting::tell_step(const CommitBisection::Step& step) const {
  const BisectReport::Commit& commit = report_.commits[step.commit];
  tell_(fmt::format("{} {}: {}", short_id(commit), to_string(step.look.answer),
                    printable(step.look.how)));
}

std::string Bisecting::code_root() const {
  const std::string sources = work_->path("sources");
  const std::string below = path_below(now_.project().root, tree_.root);
  return below.empty() || below == "." ? sources : sources + "/" + below;
}

// In the same folder as the build before, or in an empty one.
Result<Built> Bisecting::make(size_t commit, bool again) {
  const bool clean = again || !builds_in_place(recipe_);
  if (auto there =
          go_to_commit(work_->path("sources"), report_.commits[commit].id, clean, now_.launcher());
      !there)
    return there.error();
  std::error_code ignored;
  if (clean)
    std::filesystem::remove_all(build_folder_, ignored);
  else if (!recipe_.executable.empty())  // of another commit, which this one may not build
    std::filesystem::remove(build_folder_ + "/" + recipe_.executable, ignored);
  BuildLimits limits = options_.build;
  limits.time = std::min(limits.time, budget_.left());
  const Builder builder(recipe_, limits, now_.launcher());
  auto built = builder(tree_.root, work_->path("sources"), build_folder_);
  ++report_.builds;
  if (built) report_.in_builds += built->took;
  return built;
}

Result<Built> Bisecting::build(size_t commit) {
  tell_(fmt::format("building {} {}", short_id(report_.commits[commit]),
                    printable(shorten(report_.commits[commit].subject, 60))));
  auto built = make(commit, false);
  const bool may_be_stale = builds_in_place(recipe_) && report_.builds > 1;
  if (!built && may_be_stale && !was_stopped(built.error())) built = make(commit, true);
  return built;
}

CommitLook Bisecting::look(size_t commit, bool thoroughly) {
  const bool is_bad_end = commit + 1 == report_.commits.size();
  CommitLook look;
  const auto built = build(commit);
  if (!built) {
    if (is_bad_end) error_ = built.error();
    look.how = first_line(built.error().what);
    return look;
  }
  OneTestOptions options = options_.one;
  options.code_root = code_root();
  auto one = find_recorded_test(now_.project(), repro_, built->target, options);
  looked_at_ = one ? one->get() : nullptr;
  if (one)
    if (auto ready = (*one)->set_up(); !ready) one = ready.error();
  if (!one) {
    looked_at_ = nullptr;
    if (is_bad_end) error_ = one.error();
    // Before somebody wrote it, a test does not fail.
    if (is_missing_test(one.error())) look.answer = CommitLook::Answer::holds;
    look.how = first_line(one.error().what);
    return look;
  }
  look_at(**one, commit, thoroughly, look);
  stopped_by_ = stop_signal();
  looked_at_ = nullptr;
  return look;
}

void Bisecting::look_at(OneTest& one, size_t commit, bool thoroughly, CommitLook& look) {
  if (commit + 1 == report_.commits.size())
    look_at_bad_end(one, look);
  else if (report_.repro)
    look_under_plan(one, thoroughly, look);
  else
    look_plainly(one, thoroughly, look);
}

void Bisecting::look_at_bad_end(OneTest& one, CommitLook& look) {
  hunt(one, look);
  if (look.answer == CommitLook::Answer::untold && !has_ended()) rerun(one, look);
}

// Delays first: where one is enough, it is found in few runs, and every build can be asked with it.
// It need not be small: it is the difference between two builds that counts.
void Bisecting::find_a_way(Hunt& hunt) {
  for (const char* name : {"guided", "schedules"}) {
    if (!hunt.over()) find_strategy(name)->search(hunt);
    const Found* best = best_of(hunt.found());
    if (best != nullptr && best->is_reliable() && !best->trial.plan.schedule) break;
  }
  if (const Found* best = best_of(hunt.found()))
    if (hunt.times().added_by(best->trial.plan) > plausible_lateness) refine(hunt);
}

void Bisecting::hunt(OneTest& one, CommitLook& look) {
  HuntOptions options = options_.hunt;
  options.budget = std::min(longest_hunt, budget_.left() / 3);
  options.timeout = one.timeout();
  options.profile_runs = 2;
  options.runs_under_orders = 30;
  options.any_is_enough = true;
  options.measure_lateness = machine_lateness;
  Hunt hunt(one.executor(), one.shared_test(), options, one.events());
  if (hunt.prepare()) find_a_way(hunt);
  look.runs += hunt.runner().runs();
  if (hunt.runner().error()) error_ = hunt.runner().error();
  if (hunt.profile().always_fails)
    error_ = usage_error("the test fails in every run there, which is not flaky",
                         printable(options_.to), "use `git bisect run` to find the commit");
  const Found* found = best_of(hunt.found());
  if (found == nullptr) return;
  const Repro now = repro_;
  repro_ = repro_of(*found, one, options.seed);
  describe(repro_, hunt.profile(), one);
  repro_.timeout = std::max(repro_.timeout, now.timeout);
  // The build that it was found in is gone afterwards.
  repro_.target_path = now.target_path;
  repro_.target_argv = now.target_argv;
  repro_.commit = report_.commits.back().id;
  report_.repro = repro_;
  report_.headline = headline(repro_.failure);
  report_.signature = repro_.signature;
  look.answer = CommitLook::Answer::fails;
  look.failures = repro_.with_plan;
  report_.how = look.how = words_of(repro_);
}

// Nothing makes it fail, so that only its own rate can tell.
void Bisecting::rerun(OneTest& one, CommitLook& look) {
  tell_("no schedule or delay makes it fail; plain runs");
  Count& plain = report_.at_bad_end;
  while (plain.runs < most_plain_runs && plain.hits < enough_plain_failures && !has_ended()) {
    const auto result = run_plain(one, look);
    if (!result) break;
    const bool failed = result->outcome.failed();
    plain.add(failed && (repro_.signature.empty() || is_same_failure(repro_, result->outcome, {})));
    if (!failed || !repro_.signature.empty()) continue;
    repro_.outcome = result->outcome.kind;
    repro_.signature = report_.signature = result->outcome.signature;
    if (!result->outcome.failures.empty()) repro_.failure = result->outcome.failures.front();
    report_.headline = headline_of(result->outcome);
  }
  report_.how = fmt::format("failed in {} of {} plain runs", plain.hits, plain.runs);
  look.failures = plain;
  look.how = report_.how;
  if (plain.hits > 0) look.answer = CommitLook::Answer::fails;
}

std::optional<ExperimentResult> Bisecting::run_plain(OneTest& one, CommitLook& look) {
  return run(one, {{}, {}, "is it flaky at this commit?"}, look);
}

// Nothing: it could not be made.
std::optional<ExperimentResult> Bisecting::run(OneTest& one, const Trial& trial, CommitLook& look) {
  auto result = one.run(trial, TrialEnded::Purpose::candidate);
  ++look.runs;
  if (!result) look.how = first_line(result.error().what);
  if (!result || !has_started(*result)) return std::nullopt;
  return std::move(*result);
}

void Bisecting::take(const Outcome& outcome, const CodeView& code, CommitLook& look) const {
  const bool hangs = repro_.outcome == OutcomeKind::timeout && outcome.kind == repro_.outcome;
  look.failures.add(outcome.failed() && (hangs || is_same_failure(repro_, outcome, code)));
}

void Bisecting::conclude(CommitLook& look, const std::string& what) {
  if (look.failures.runs == 0) return;
  look.answer = look.failures.hits > 0 ? CommitLook::Answer::fails : CommitLook::Answer::holds;
  look.how = fmt::format("{} of {} failed so {}", look.failures.hits,
                         counted(look.failures.runs, "run"), what);
}

void Bisecting::look_plainly(OneTest& one, bool thoroughly, CommitLook& look) {
  const int wanted =
      runs_that_tell(report_.at_bad_end, thoroughly ? error_of_thorough_look : error_of_look);
  while (look.failures.runs < wanted && look.failures.hits == 0 && !has_ended())
    if (const auto result = run_plain(one, look))
      take(result->outcome, {}, look);
    else
      break;
  conclude(look, "by themselves");
}

// Where the plan's sites are gone, or belong to one build alone, schedules are drawn anew.
void Bisecting::look_under_plan(OneTest& one, bool thoroughly, CommitLook& look) {
  const auto located =
      locate_plan(repro_, one.project_code(), [&](const Plan& plan) -> Result<ExperimentResult> {
        ++look.runs;
        return one.run({plan, {}, "what the test does at this commit"},
                       TrialEnded::Purpose::profile);
      });
  if (!located) {
    look.how = first_line(located.error().what);
    return;
  }
  bool is_here = located->relocation.is_complete() && !repro_.plan.schedule;
  const int wanted =
      runs_that_tell(repro_.with_plan, thoroughly ? error_of_thorough_look : error_of_look);
  const Trial trial{located->relocation.plan, repro_.conditions, "the same as at the bad end"};
  while (is_here && look.failures.runs < wanted && look.failures.hits == 0 && !has_ended())
    if (const auto result = run(one, trial, look); !result)
      break;
    else if (!result->outcome.failed() && !has_fired(trial.plan, *result))
      is_here = false;  // nobody was late, so that it says nothing
    else
      take(result->outcome, located->code, look);
  conclude(look, "under the same plan");
  const int schedules = is_here      ? (thoroughly ? schedules_beside_plan : 0)
                        : thoroughly ? schedules_of_thorough_look
                                     : schedules_of_look;
  if (schedules > 0 && look.failures.hits == 0 && !has_ended())
    look_under_schedules(one, schedules, located->code, look);
  if (look.answer == CommitLook::Answer::untold && look.how.empty())
    look.how = "the plan's places are gone, and the test cannot be controlled";
}

void Bisecting::look_under_schedules(OneTest& one, int most, const CodeView& code,
                                     CommitLook& look) {
  TrialRunner runner(one.executor(), one.shared_test(), one.events(), budget_.left());
  SampledSchedules::Options options;
  options.most = most;
  options.budget = std::min(longest_schedules, budget_.left());
  options.timeout = one.timeout();
  options.latest = lateness();
  SampledSchedules schedules(runner, base_plan(options_.hunt), options);
  CommitLook sampled;
  schedules([&](const ExperimentResult& result) {
    take(result.outcome, code, sampled);
    return sampled.failures.hits > 0;
  });
  look.runs += runner.runs();
  if (sampled.failures.runs == 0) return;
  const bool had_plan = look.failures.runs > 0;
  look.failures += sampled.failures;
  conclude(look, had_plan ? "under the same plan or sampled schedules"
                          : "under sampled schedules: the plan's places are gone");
}

// As late as it had to be at the bad end, and as a busy machine is.
Duration Bisecting::lateness() const {
  const auto slack = slack_of(repro_);
  return std::max<Duration>(100ms, 2 * slack.value_or(Duration::zero()));
}

}  // namespace unflake
