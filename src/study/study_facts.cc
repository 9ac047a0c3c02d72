#include "study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace unflake {
namespace {

using Kind = LifecycleStep::Kind;
using FailureKey = std::pair<TestId, std::string>;

constexpr auto shortest_before = std::chrono::days(30);

bool opens(Kind kind) {
  return kind == Kind::quarantined || kind == Kind::report_opened || kind == Kind::report_reopened;
}

bool closes(Kind kind) {
  return kind == Kind::lifted || kind == Kind::report_closed;
}

// What happened to one failure, step by step.
class EpisodeBook {
 public:
  EpisodeBook(const FailureKey& key, const FlakyFailure* failure) : key_(key), failure_(failure) {
    if (failure) open(failure->first, "");
  }

  void add(const LifecycleStep& step) {
    if (opens(step.kind)) open(step.at, step.url);
    if (closes(step.kind)) close(step);
  }

  std::vector<FlakyEpisode> finish() {
    if (failure_ && !episodes_.empty()) episodes_.back().last_failure = failure_->last;
    return std::move(episodes_);
  }

 private:
  void open(TimePoint at, const std::string& url) {
    if (episodes_.empty() || episodes_.back().closed) {
      FlakyEpisode episode;
      episode.test = key_.first;
      episode.signature = key_.second;
      episode.opened = at;
      episode.came_back = !episodes_.empty();
      episodes_.push_back(std::move(episode));
    }
    // A report that is older than the oldest run that is kept.
    episodes_.back().opened = std::min(episodes_.back().opened, at);
    if (episodes_.back().url.empty()) episodes_.back().url = url;
  }

  // A report is closed and a quarantine lifted for one and the same fix: the first of them counts,
  // and what the second one knows is taken along.
  void close(const LifecycleStep& step) {
    if (episodes_.empty()) open(step.at, step.url);
    FlakyEpisode& episode = episodes_.back();
    if (!episode.closed) episode.closed = std::max(step.at, episode.opened);
    if (episode.commit.empty()) episode.commit = step.commit;
    if (episode.url.empty()) episode.url = step.url;
  }

  FailureKey key_;
  const FlakyFailure* failure_;
  std::vector<FlakyEpisode> episodes_;
};

bool is_same_failure(const FlakyEpisode& a, const FlakyEpisode& b) {
  return a.test == b.test && a.signature == b.signature;
}

}  // namespace

bool is_settled(const FlakyEpisode& episode) {
  return episode.closed && !(episode.last_failure && *episode.last_failure > *episode.closed);
}

std::vector<FlakyEpisode> episodes_of(const std::vector<FlakyFailure>& failures,
                                      std::vector<LifecycleStep> steps) {
  std::erase_if(steps, is_finding);
  std::ranges::stable_sort(steps, {}, &LifecycleStep::at);
  std::map<TestId, std::set<std::string>> signatures;
  std::map<FailureKey, const FlakyFailure*> known;
  for (const FlakyFailure& failure : failures) {
    signatures[failure.test].insert(failure.signature);
    known[{failure.test, failure.signature}] = &failure;
  }
  for (const LifecycleStep& step : steps)
    if (!step.signature.empty()) signatures[step.test].insert(step.signature);
  for (const LifecycleStep& step : steps)
    if (signatures[step.test].empty()) signatures[step.test].insert("");

  std::map<FailureKey, EpisodeBook> books;
  for (const auto& [test, of_test] : signatures)
    for (const std::string& signature : of_test) {
      const FailureKey key{test, signature};
      const auto failure = known.find(key);
      books.try_emplace(key, key, failure == known.end() ? nullptr : failure->second);
    }
  for (const LifecycleStep& step : steps)
    for (const std::string& signature : signatures[step.test])
      if (step.signature.empty() || step.signature == signature)
        books.at({step.test, signature}).add(step);

  std::vector<FlakyEpisode> all;
  for (auto& [key, book] : books) std::ranges::move(book.finish(), std::back_inserter(all));
  return all;
}

ClaimWindows windows_of(const std::vector<FlakyEpisode>& episodes, size_t claim,
                        const Window& known) {
  const FlakyEpisode& one = episodes[claim];
  const TimePoint at = *one.closed;
  ClaimWindows windows{{at, at}, {std::max(at, known.from), std::max(at, known.until)}};
  const size_t next = claim + 1;
  if (next < episodes.size() && is_same_failure(one, episodes[next]) && episodes[next].closed)
    windows.after.until = std::min(windows.after.until, *episodes[next].closed);
  windows.before.from =
      at - std::max<TimePoint::duration>(windows.after.until - at, shortest_before);
  if (claim > 0 && is_same_failure(one, episodes[claim - 1]) && episodes[claim - 1].closed)
    windows.before.from = std::max(windows.before.from, *episodes[claim - 1].closed);
  windows.before.from = std::min(at, std::max(windows.before.from, known.from));
  return windows;
}

namespace {

// A study that takes minutes because somebody's suite fails in a hundred thousand ways is not
// useful.
constexpr size_t most_failures = 20'000;
constexpr size_t most_tests = 5'000;
constexpr size_t most_claims = 1'000;
constexpr size_t most_commits = 200;

class Gathering {
 public:
  Gathering(Store& store, const StudyQuestion& question) : store_(store), question_(question) {
    facts_.project = question.project;
    known_until_.until = question.window.until;
  }

  Result<ProjectFacts> operator()() {
    if (auto done = prevalence(); !done) return done.error();
    if (auto done = lifecycle(); !done) return done.error();
    if (question_.with_runs)
      if (auto done = runs_of_tests(); !done) return done.error();
    if (question_.with_claims)
      if (auto done = claims(); !done) return done.error();
    if (question_.with_commits) commits();
    return std::move(facts_);
  }

 private:
  Result<void> prevalence() {
    auto rows = store_.lifecycle().prevalence(question_.window);
    if (!rows) return rows.error();
    for (Prevalence& row : *rows)
      if (row.project == question_.project) facts_.prevalence = std::move(row);
    return {};
  }

  Result<void> lifecycle() {
    auto failures = store_.lifecycle().flaky_failures(known_until_, most_failures);
    if (!failures) return failures.error();
    auto steps = store_.lifecycle().steps(known_until_);
    if (!steps) return steps.error();
    auto causes = store_.lifecycle().causes();
    if (!causes) return causes.error();
    if (failures->size() == most_failures)
      note("only the {} flaky failures that hit most builds were looked at", most_failures);
    facts_.failures = std::move(*failures);
    facts_.episodes = episodes_of(facts_.failures, std::move(*steps));
    leave_out_never_flaky();
    facts_.causes = std::move(*causes);
    return {};
  }

  // Somebody put it in quarantine, but no run has shown it to be flaky: it may simply be broken.
  void leave_out_never_flaky() {
    std::set<TestId> flaky, others;
    for (const FlakyFailure& failure : facts_.failures) flaky.insert(failure.test);
    std::erase_if(facts_.episodes, [&](const FlakyEpisode& episode) {
      if (!flaky.contains(episode.test)) others.insert(episode.test);
      return !flaky.contains(episode.test);
    });
    facts_.never_flaky = static_cast<int64_t>(others.size());
  }

  Result<void> runs_of_tests() {
    std::set<TestId> all;
    for (const FlakyEpisode& episode : facts_.episodes) all.insert(episode.test);
    facts_.other_repros = std::ranges::count_if(
        question_.repros, [&](const auto& repro) { return !all.contains(repro.first); });
    std::vector<TestId> tests(all.begin(), all.end());
    if (tests.size() > most_tests) {
      note("tables 3 and 4 are of {} of {} flaky tests", most_tests, tests.size());
      tests.resize(most_tests);
    }
    auto summaries = store_.summarise_tests(tests);
    if (!summaries) return summaries.error();
    auto summary = summaries->begin();
    for (const TestId& test : tests) {
      const bool is_known = summary != summaries->end() && summary->test == test;
      facts_.tests.push_back(runs_of(test, is_known ? &*summary++ : nullptr));
    }
    return {};
  }

  FlakyTestRuns runs_of(const TestId& test, const TestSummary* summary) const {
    FlakyTestRuns runs;
    runs.test = test;
    if (const auto repro = question_.repros.find(test); repro != question_.repros.end()) {
      runs.has_repro = true;
      runs.category = repro->second;
    }
    if (!summary) return runs;
    runs.passes = summary->passes;
    runs.failures = summary->failures;
    runs.passing = summary->pass_durations;
    runs.failing = summary->fail_durations;
    return runs;
  }

  Result<void> claims() {
    auto horizon = store_.forgotten_before();
    if (!horizon) return horizon.error();
    facts_.complete_since = *horizon;
    for (size_t i = 0; i < facts_.episodes.size(); ++i) {
      if (!facts_.episodes[i].closed) continue;
      if (facts_.claims.size() == most_claims) {
        note("only the first {} claimed fixes were looked at", most_claims);
        break;
      }
      auto evidence = evidence_of(i);
      if (!evidence) return evidence.error();
      facts_.claims.push_back(*evidence);
    }
    return {};
  }

  Result<ClaimEvidence> evidence_of(size_t claim) {
    const FlakyEpisode& episode = facts_.episodes[claim];
    const ClaimWindows windows =
        windows_of(facts_.episodes, claim,
                   {facts_.complete_since.value_or(TimePoint::min()), question_.window.until});
    auto before = store_.count_runs(episode.test, episode.signature, windows.before);
    if (!before) return before.error();
    auto after = store_.count_runs(episode.test, episode.signature, windows.after);
    if (!after) return after.error();
    ClaimEvidence evidence{claim, *before, *after, std::nullopt};
    const bool failed = episode.signature.empty() ? after->failures > 0 : after->with_signature > 0;
    if (!failed) return evidence;
    auto again = first_flaky_failure(episode, windows.after);
    if (!again) return again.error();
    evidence.again = *again;
    return evidence;
  }

  Result<std::optional<TimePoint>> first_flaky_failure(const FlakyEpisode& episode,
                                                       const Window& window) {
    auto failures = store_.lifecycle().flaky_failures(window, most_failures);
    if (!failures) return failures.error();
    std::optional<TimePoint> first;
    for (const FlakyFailure& one : *failures) {
      const bool is_it = one.test == episode.test &&
                         (episode.signature.empty() || one.signature == episode.signature);
      if (is_it && (!first || one.first < *first)) first = one.first;
    }
    return first;
  }

  void commits() {
    for (const FlakyEpisode& episode : facts_.episodes) {
      if (!episode.closed || episode.commit.empty()) continue;
      if (facts_.commits.contains(episode.commit)) continue;
      if (facts_.commits.size() == most_commits) {
        note("only {} commits were looked at", most_commits);
        return;
      }
      facts_.commits[episode.commit] = question_.change_of(episode.commit);
    }
  }

  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    facts_.notes.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  Store& store_;
  const StudyQuestion& question_;
  Window known_until_;
  ProjectFacts facts_;
};

}  // namespace

Result<ProjectFacts> gather_facts(Store& store, const StudyQuestion& question) {
  return Gathering(store, question)();
}

}  // namespace unflake
