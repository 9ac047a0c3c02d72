#include <algorithm>
#include <map>
#include <set>

#include "history/fix_place.h"
#include "history/study.h"
#include "stats/comparison.h"
#include "stats/several.h"
#include "trace/explanation.h"

namespace unflake {
namespace {

// The categories of the causes that a test's failures belong to.
std::map<TestId, std::set<std::string>> categories_by_test(const ProjectFacts& facts) {
  std::map<std::string, std::set<std::string>> by_signature;
  for (const CauseRecord& cause : facts.causes)
    for (const std::string& signature : cause.signatures)
      if (!cause.category.empty() && cause.category != to_string(CauseKind::unknown))
        by_signature[signature].insert(cause.category);
  std::map<TestId, std::set<std::string>> by_test;
  for (const FlakyEpisode& episode : facts.episodes) {
    auto& of_test = by_test[episode.test];
    const auto found = by_signature.find(episode.signature);
    if (found != by_signature.end()) of_test.insert(found->second.begin(), found->second.end());
  }
  for (const FlakyTestRuns& test : facts.tests)
    if (!test.category.empty()) by_test[test.test].insert(test.category);
  return by_test;
}

std::set<std::pair<TestId, std::string>> fixes_of(const ProjectFacts& facts) {
  std::set<std::pair<TestId, std::string>> fixes;
  for (const FlakyEpisode& episode : facts.episodes)
    if (episode.closed && !episode.commit.empty()) fixes.insert({episode.test, episode.commit});
  return fixes;
}

std::vector<std::string> files_that_failed(const ProjectFacts& facts) {
  std::set<std::string> files;
  for (const FlakyFailure& failure : facts.failures)
    if (failure.failure.kind == FailureKind::assertion && is_code_path(failure.failure.file))
      files.insert(failure.failure.file);
  return {files.begin(), files.end()};
}

void count_fix(FixCounts& counts, const CommitChange& change, bool is_async_wait,
               const std::vector<std::string>& test_files) {
  ++counts.places[static_cast<size_t>(fix_place(change.paths, test_files))];
  counts.async_fixes += is_async_wait;
  for (const FixKind kind : fix_kinds(change)) {
    ++counts.kinds[static_cast<size_t>(kind)];
    counts.async_kinds[static_cast<size_t>(kind)] += is_async_wait;
  }
}

void count_fixes(FixCounts& counts, const ProjectFacts& facts,
                 const std::map<TestId, std::set<std::string>>& categories) {
  const std::vector<std::string> test_files = files_that_failed(facts);
  const std::string async_wait(to_string(CauseKind::async_wait));
  for (const auto& [test, commit] : fixes_of(facts)) {
    ++counts.fixes;
    const auto change = facts.commits.find(commit);
    if (change == facts.commits.end() || !change->second)
      ++counts.unreadable;
    else
      count_fix(counts, *change->second, categories.at(test).contains(async_wait), test_files);
  }
  counts.commits += static_cast<int64_t>(
      std::ranges::count_if(facts.commits, [](const auto& one) { return one.second.has_value(); }));
}

Tries tries_of(const RunCounts& counts, const FlakyEpisode& episode) {
  return {episode.signature.empty() ? counts.failures : counts.with_signature,
          counts.passes + counts.failures};
}

// Runs that were made until a failure led to the fix are biased towards failing. Without that one
// failure the share of the others is not (Haldane's estimate for inverse sampling).
Tries without_the_last(Tries tries) {
  if (tries.failures == 0) return tries;
  return {tries.failures - 1, tries.runs - 1};
}

ClaimedFix claimed_fix(const ProjectFacts& facts, const ClaimEvidence& claim) {
  const FlakyEpisode& episode = facts.episodes[claim.episode];
  ClaimedFix fix;
  fix.project = facts.project;
  fix.test = episode.test;
  fix.signature = episode.signature;
  fix.at = *episode.closed;
  fix.commit = episode.commit;
  fix.before = without_the_last(tries_of(claim.before, episode));
  fix.after = tries_of(claim.after, episode);
  fix.p =
      fisher_more_often(fix.before.failures, fix.before.runs, fix.after.failures, fix.after.runs);
  return fix;
}

bool can_be_compared(const ClaimedFix& fix) {
  return fix.before.failures > 0;
}

// "Not lower" takes as many runs as would have shown that the failure was gone.
void judge(ClaimedFix& fix, double p_corrected, double error) {
  fix.p_corrected = p_corrected;
  const auto more = misses_until_less_often(fix.before.failures, fix.before.runs,
                                            fix.after.failures, fix.after.runs, error);
  const bool would_have_shown =
      fisher_more_often(fix.before.failures, fix.before.runs, 0, fix.after.runs) <= error;
  if (p_corrected <= claim_error) {
    fix.verdict = ClaimedFix::Verdict::lower;
  } else if (would_have_shown) {
    fix.verdict = ClaimedFix::Verdict::not_lower;
  } else {
    fix.verdict = ClaimedFix::Verdict::too_few_runs;
    fix.more_runs = more;
  }
}

}  // namespace

CategoryCounts compute_categories(const std::vector<ProjectFacts>& projects) {
  CategoryCounts counts;
  std::map<std::string, int64_t> by_name;
  for (const ProjectFacts& facts : projects) {
    const auto categories = categories_by_test(facts);
    counts.tests += static_cast<int64_t>(categories.size());
    for (const auto& [test, of_test] : categories) {
      counts.explained += !of_test.empty();
      for (const std::string& name : of_test) ++by_name[name];
    }
    count_fixes(counts.fixes, facts, categories);
  }
  for (const auto& [name, tests] : by_name) counts.causes.push_back({name, tests});
  std::ranges::stable_sort(counts.causes, std::greater(), &CategoryRow::tests);
  return counts;
}

std::vector<ClaimedFix> compute_claimed_fixes(const std::vector<ProjectFacts>& projects) {
  std::vector<ClaimedFix> fixes;
  for (const ProjectFacts& facts : projects)
    for (const ClaimEvidence& claim : facts.claims) fixes.push_back(claimed_fix(facts, claim));
  std::vector<ClaimedFix*> compared;
  std::vector<double> p_values;
  for (ClaimedFix& fix : fixes) {
    if (!can_be_compared(fix)) continue;
    compared.push_back(&fix);
    p_values.push_back(fix.p);
  }
  const std::vector<double> corrected = holm(p_values);
  const double error = claim_error / std::max(1.0, static_cast<double>(compared.size()));
  for (size_t i = 0; i < compared.size(); ++i) judge(*compared[i], corrected[i], error);
  return fixes;
}

}  // namespace unflake
