#include "search/repair/proof_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "stats/rates.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using ProofVerdict = Proof::Verdict;
using Judgement = std::pair<ProofVerdict, std::string>;

constexpr double allowed_error = 0.05;
// By both: a test that did not wait before may have to wait now.
constexpr double much_slower = 3;
constexpr Duration much_longer = 1s;

constexpr const char* waits_in_vain =
    "with the patch it still fails under schedules, after more time than lateness explains: it may "
    "wait for what does not come";

// Failures that came after too long a time say nothing by themselves: but they may be a new wait
// that ran out, and as many as there were before are no accident.
bool still_fails_late(const Proof& proof, int beyond_bound) {
  const ProofRuns* runs = proof.find(ProofRuns::Kind::schedules);
  if (beyond_bound == 0 || runs == nullptr || runs->before.hits == 0) return false;
  const Count doubtful{runs->after.hits + beyond_bound, runs->after.runs + beyond_bound};
  return fisher_more_often(runs->before, doubtful) > allowed_error;
}

bool came_before(const Proof& proof) {
  return std::ranges::any_of(proof.runs,
                             [](const ProofRuns& runs) { return runs.before.hits > 0; });
}

// What speaks against the patch itself; nothing: no run does.
std::optional<Judgement> against(const Proof& proof, const ProofEvidence& seen,
                                 const SideRuns& before, const SideRuns& after) {
  if (seen.recorded_after > 0)
    return Judgement{ProofVerdict::not_repaired, "the failure still comes " + seen.when};
  if (after.skips_alone(before))
    return Judgement{ProofVerdict::not_repaired,
                     "with the patch the test skips itself: it tests nothing"};
  if (!seen.hollow.empty()) return Judgement{ProofVerdict::not_repaired, seen.hollow};
  if (const std::string other = after.new_failure(before); !other.empty())
    return Judgement{ProofVerdict::worse, "with the patch it fails in another way: " + other};
  if (!seen.others_fail.empty()) return Judgement{ProofVerdict::worse, seen.others_fail};
  const bool is_slower = proof.overhead && proof.overhead->low > much_slower &&
                         proof.median_after - proof.median_before > much_longer;
  if (is_slower)
    return Judgement{ProofVerdict::worse,
                     fmt::format("it takes {} instead of {}", format_duration(proof.median_after),
                                 format_duration(proof.median_before))};
  return std::nullopt;
}

Judgement judged(const Proof& proof, const ProofEvidence& seen, const SideRuns& before,
                 const SideRuns& after) {
  if (auto bad = against(proof, seen, before, after)) return *bad;
  if (proof.interrupted) return {ProofVerdict::not_shown, "it was stopped"};
  if (!came_before(proof))
    return {ProofVerdict::not_shown, "the failure did not come without the patch either"};
  if (still_fails_late(proof, seen.beyond_bound)) return {ProofVerdict::not_shown, waits_in_vain};
  if (!is_shown(proof, seen.beyond_bound))
    return {ProofVerdict::not_shown,
            seen.beyond_bound > 0
                ? waits_in_vain
                : "the failure came too seldom without the patch for its absence to say something"};
  if (!seen.changed_check.empty() && !seen.has_teeth)
    return {ProofVerdict::not_shown,
            fmt::format("the patch changes or drops the check that failed, `{}`, and no run shows "
                        "that what is checked now can fail",
                        seen.changed_check)};
  return {ProofVerdict::repaired, ""};
}

std::vector<std::string> limits_of_proof(const Proof& proof, const ProofEvidence& seen,
                                         const SideRuns& before, const SideRuns& after) {
  std::vector<std::string> said;
  for (const ProofRuns& runs : proof.runs)
    if (!runs.why_not.empty())
      said.push_back(fmt::format("{}: {}", to_string(runs.kind), runs.why_not));
  if (proof.latest > Duration{})
    said.push_back(fmt::format("a machine on which a thread is more than {} late",
                               format_duration(proof.latest)));
  if (!seen.not_repeatable.empty())
    said.push_back("what no schedule decides: " + seen.not_repeatable);
  for (const std::string& once : after.seen_once(before))
    said.push_back("one run with the patch failed in another way: " + once);
  for (const std::string& far : after.far_failures())
    said.push_back("a thread that is far later makes it fail in another way: " + far);
  if (!seen.changed_check.empty() && seen.has_teeth)
    said.push_back(
        "the patch changes the check that failed; the new one can fail, but whether it "
        "checks the same is for you to say");
  else if (!seen.check_is_known)
    said.push_back("whether the check that failed is still made: passing runs do not show it");
  return said;
}

}  // namespace

bool is_shown(const Proof& proof, int beyond_bound) {
  return std::ranges::any_of(proof.runs, [&](const ProofRuns& runs) {
    if (runs.kind == ProofRuns::Kind::search)
      return runs.before.hits > 0 && runs.after.runs > 0 && beyond_bound == 0;
    if (runs.kind == ProofRuns::Kind::schedules) {
      const Count doubtful{runs.after.hits + beyond_bound, runs.after.runs + beyond_bound};
      return runs.before.hits > 0 && fisher_more_often(runs.before, doubtful) <= allowed_error;
    }
    return runs.before.hits > 0 && fisher_more_often(runs.before, runs.after) <= allowed_error;
  });
}

void conclude(Proof& proof, const ProofEvidence& seen, const SideRuns& before,
              const SideRuns& after) {
  proof.interrupted = before.runner.stopped() || after.runner.stopped();
  if (seen.recorded_after == 0 && proof.runs_with_patch > 0)
    proof.rate_below = upper_bound_zero_failures(proof.runs_with_patch);
  std::tie(proof.verdict, proof.why) = judged(proof, seen, before, after);
  const bool is_refuted = against(proof, seen, before, after).has_value();
  if (!is_refuted) proof.not_covered = limits_of_proof(proof, seen, before, after);
}

}  // namespace unflake
