#include "study/study.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "explain/explanation.h"
#include "stats/rates.h"

namespace unflake {
namespace {

constexpr double run_time_error = 0.05;

double days(TimePoint::duration time) {
  return std::chrono::duration<double, std::ratio<86400>>(time).count();
}

// Whether anything about a test is open, or has failed since it was closed.
std::map<TestId, bool> settled_tests(const ProjectFacts& facts) {
  std::map<TestId, bool> settled;
  for (const FlakyEpisode& episode : facts.episodes)
    settled.try_emplace(episode.test, true).first->second &= is_settled(episode);
  return settled;
}

Duration weighted_mean(const std::vector<const DurationSummary*>& all) {
  double sum = 0, runs = 0;
  for (const DurationSummary* one : all) {
    sum += static_cast<double>(one->mean.count()) * static_cast<double>(one->runs);
    runs += static_cast<double>(one->runs);
  }
  return Duration(runs > 0 ? std::llround(sum / runs) : 0);
}

RunTimes run_times_of(const std::vector<const DurationSummary*>& all) {
  RunTimes times;
  std::vector<double> medians;
  for (const DurationSummary* one : all) {
    times.runs += one->runs;
    medians.push_back(static_cast<double>(one->median.count()));
  }
  times.mean = weighted_mean(all);
  times.median = Duration(std::llround(spread_of(std::move(medians)).median));
  return times;
}

RunTimeRow::Tendency tendency_of(const RunTimeRow& row) {
  if (row.p > run_time_error) return RunTimeRow::Tendency::unclear;
  return row.longer > row.shorter ? RunTimeRow::Tendency::longer : RunTimeRow::Tendency::shorter;
}

Tries tries_of(const RunCounts& counts, const FlakyEpisode& episode) {
  return {episode.signature.empty() ? counts.failures : counts.with_signature,
          counts.passes + counts.failures};
}

template <class Row>
std::vector<Row> rows_of(const std::vector<ProjectFacts>& projects, const auto& compute) {
  std::vector<Row> rows;
  for (const ProjectFacts& facts : projects) rows.push_back(compute(facts));
  return rows;
}

}  // namespace

PrevalenceRow compute_prevalence(const ProjectFacts& facts) {
  PrevalenceRow row;
  row.project = facts.project;
  if (!facts.prevalence) return row;
  const Prevalence& seen = *facts.prevalence;
  row.tests = seen.tests;
  row.builds = seen.builds;
  row.failed_builds = seen.failed_builds;
  row.runs = seen.runs;
  row.median_build = seen.median_build;
  row.flaky_tests = seen.flaky_tests;
  row.flaky_failures = seen.flaky_failures;
  row.flaky_builds = seen.flaky_builds;
  row.suppressed = seen.suppressed;
  return row;
}

FlakyTestRow compute_flaky_tests(const ProjectFacts& facts) {
  FlakyTestRow row;
  row.project = facts.project;
  std::set<TestId> with_commit, with_link;
  for (const FlakyEpisode& episode : facts.episodes) {
    if (!episode.commit.empty()) with_commit.insert(episode.test);
    if (!episode.url.empty()) with_link.insert(episode.test);
  }
  for (const auto& [test, is_settled] : settled_tests(facts)) {
    ++row.flaky;
    if (!is_settled) continue;
    ++row.closed;
    row.with_commit += with_commit.contains(test);
    row.with_link += with_link.contains(test);
  }
  row.never_flaky = facts.never_flaky;
  return row;
}

RateRow compute_rates(const ProjectFacts& facts) {
  RateRow row;
  row.project = facts.project;
  row.other_repros = facts.other_repros;
  std::vector<double> rates;
  for (const FlakyTestRuns& test : facts.tests) {
    const int64_t runs = test.passes + test.failures;
    ++row.tests;
    row.runs += runs;
    row.on_demand += test.has_repro;
    if (test.passes == 0 || test.failures == 0) continue;
    ++row.both;
    rates.push_back(static_cast<double>(test.failures) / static_cast<double>(runs));
  }
  row.rates = spread_of(std::move(rates));
  return row;
}

RunTimeRow compute_run_times(const ProjectFacts& facts) {
  RunTimeRow row;
  row.project = facts.project;
  std::vector<const DurationSummary*> passing, failing;
  std::vector<double> ratios;
  for (const FlakyTestRuns& test : facts.tests) {
    if (test.passing.runs == 0 || test.failing.runs == 0) continue;
    passing.push_back(&test.passing);
    failing.push_back(&test.failing);
    row.longer += test.failing.median > test.passing.median;
    row.shorter += test.failing.median < test.passing.median;
    row.same += test.failing.median == test.passing.median;
    ratios.push_back(static_cast<double>(test.failing.median.count()) /
                     std::max(1.0, static_cast<double>(test.passing.median.count())));
  }
  row.passing = run_times_of(passing);
  row.failing = run_times_of(failing);
  row.p = sign_test(row.longer, row.shorter);
  row.ratio = spread_of(std::move(ratios)).median;
  row.tendency = tendency_of(row);
  return row;
}

RepairTimeRow compute_repair_times(const ProjectFacts& facts, TimePoint until) {
  RepairTimeRow row;
  row.project = facts.project;
  std::vector<double> closed;
  std::vector<Lifetime> all;
  for (const FlakyEpisode& episode : facts.episodes) {
    const TimePoint end = episode.closed.value_or(until);
    const double lasted = std::max(0.0, days(end - episode.opened));
    all.push_back({lasted, episode.closed.has_value()});
    if (episode.closed) closed.push_back(lasted);
  }
  row.closed = spread_of(std::move(closed));
  row.survival = survival_of(std::move(all));
  return row;
}

ReoccurrenceCounts compute_reoccurrences(const std::vector<ProjectFacts>& projects) {
  ReoccurrenceCounts counts;
  std::vector<double> after;
  for (const ProjectFacts& facts : projects) {
    std::set<TestId> claimed, again, failed;
    for (const ClaimEvidence& claim : facts.claims) {
      const FlakyEpisode& episode = facts.episodes[claim.episode];
      claimed.insert(episode.test);
      if (tries_of(claim.after, episode).failures > 0) failed.insert(episode.test);
      if (!claim.again) continue;
      again.insert(episode.test);
      after.push_back(days(*claim.again - *episode.closed));
      counts.all.push_back({facts.project, episode.test, episode.signature, *episode.closed,
                            *claim.again, episode.commit});
    }
    counts.tests += static_cast<int64_t>(claimed.size());
    counts.tests_again += static_cast<int64_t>(again.size());
    counts.tests_only_failing +=
        std::ranges::count_if(failed, [&](const TestId& test) { return !again.contains(test); });
  }
  counts.days = spread_of(std::move(after));
  return counts;
}

Study compute_study(const std::vector<ProjectFacts>& projects, const Window& window) {
  Study study;
  study.from = window.from;
  study.until = window.until;
  study.prevalence = rows_of<PrevalenceRow>(projects, compute_prevalence);
  study.flaky_tests = rows_of<FlakyTestRow>(projects, compute_flaky_tests);
  study.rates = rows_of<RateRow>(projects, compute_rates);
  study.run_times = rows_of<RunTimeRow>(projects, compute_run_times);
  study.categories = compute_categories(projects);
  study.repair_times = rows_of<RepairTimeRow>(projects, [&](const ProjectFacts& facts) {
    return compute_repair_times(facts, window.until);
  });
  study.reoccurrences = compute_reoccurrences(projects);
  study.claimed_fixes = compute_claimed_fixes(projects);
  for (const ProjectFacts& facts : projects) {
    study.notes.insert(study.notes.end(), facts.notes.begin(), facts.notes.end());
    if (facts.complete_since)
      study.complete_since =
          std::max(study.complete_since.value_or(TimePoint::min()), *facts.complete_since);
  }
  return study;
}

namespace {

// The categories of the causes that a test's failures belong to.
std::map<TestId, std::set<std::string>> categories_by_test(const ProjectFacts& facts) {
  std::map<std::string, std::set<std::string>> by_signature;
  for (const CauseRecord& cause : facts.causes)
    for (const std::string& signature : cause.signatures)
      if (!cause.category.empty() && cause.category != to_string(RootCauseKind::unknown))
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
  const std::string async_wait(to_string(RootCauseKind::async_wait));
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

// Runs that were made before a failure led to the fix are biased towards failing. Without that one
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
