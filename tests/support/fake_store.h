#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"
#include "store/summary.h"
#include "store/values.h"
#include "util/text.h"

namespace unflake {

// A history in memory that takes its time and keeps nothing: the plainest reading of what a Store
// promises. Counts everything anew at every question.
class FakeStore : public Store, public LifecycleStore {
 public:
  struct KeptRun {
    SessionId session = 0;
    RunRecord run;
  };

  std::string project;
  std::vector<SessionRecord> sessions;  // a session's id is its place, from 1
  std::vector<KeptRun> runs;
  std::vector<LifecycleStep> known_steps;
  std::vector<CauseRecord> known_causes;
  std::vector<TargetRecord> targets;
  std::set<std::tuple<SessionId, TestId, std::string>> suppressed;
  std::set<SessionId> finished;
  std::optional<TimePoint> horizon;
  std::map<TestId, std::pair<SessionId, FunctionsRecord>> executed;  // the newest of each test
  size_t batches = 0;                                                // calls of record_all

  Result<SessionId> begin_session(const SessionRecord& session) override {
    for (size_t i = 0; i < sessions.size(); ++i)
      if (!session.uuid.empty() && sessions[i].uuid == session.uuid)
        return static_cast<SessionId>(i + 1);
    sessions.push_back(session);
    if (session.uuid.empty()) sessions.back().uuid = "session-" + std::to_string(sessions.size());
    return static_cast<SessionId>(sessions.size());
  }

  Result<std::optional<TimePoint>> find_session(const std::string& uuid) override {
    for (const SessionRecord& session : sessions)
      if (session.uuid == uuid) return std::optional(session.started);
    return std::optional<TimePoint>();
  }

  Result<void> record(SessionId session, const RunRecord& run) override {
    if (keys_.insert({session, run.test, run.started, run.attempt}).second)
      runs.push_back({session, run});
    return {};
  }

  Result<void> record_all(SessionId session, std::span<const RunRecord> all) override {
    ++batches;
    for (const RunRecord& run : all) (void)record(session, run);
    return {};
  }

  Result<void> suppress(SessionId session, const TestId& test,
                        const std::string& signature) override {
    suppressed.insert({session, test, signature});
    return {};
  }

  Result<void> end_session(SessionId session) override {
    finished.insert(session);
    return {};
  }

  Result<void> stop_session(SessionId) override { return {}; }

  Result<std::optional<LastFailures>> last_failures(const SessionQuestion& question) override {
    std::vector<SessionId> newest(sessions.size());
    std::iota(newest.begin(), newest.end(), 1);
    std::ranges::stable_sort(newest, std::greater(), [&](SessionId id) {
      return std::pair(sessions[static_cast<size_t>(id - 1)].started, id);
    });
    LastFailuresReader reader(question.target);
    for (const SessionId id : newest)
      if (is_meant(id, question) && !reader.take(tests_of(id))) break;
    return reader.result();
  }

  Result<void> remember_target(const TargetRecord& target) override {
    std::erase_if(targets, [&](const TargetRecord& one) { return one.name == target.name; });
    targets.push_back(target);
    return {};
  }

  Result<std::optional<TargetRecord>> find_target(const std::string& name) override {
    for (const TargetRecord& target : targets)
      if (target.name == name) return std::optional(target);
    return std::optional<TargetRecord>();
  }

  Result<std::vector<TestSummary>> summarise(const std::string& pattern, size_t most) override {
    std::vector<TestSummary> all;
    for (const TestId& test : tests_in({}))
      if (glob_match(pattern, to_string(test))) all.push_back(summary_of(test));
    std::ranges::stable_sort(all, std::greater(), [](const TestSummary& one) {
      return static_cast<double>(one.failures) /
             static_cast<double>(std::max<int64_t>(1, one.passes + one.failures));
    });
    if (all.size() > most) all.resize(most);
    return all;
  }

  Result<std::optional<TestSummary>> summarise_test(const TestId& test) override {
    if (!tests_in({}).contains(test)) return std::optional<TestSummary>();
    return std::optional(summary_of(test));
  }

  Result<std::vector<RecentRun>> recent_runs(const TestId& test, size_t most) override {
    std::vector<RecentRun> recent;
    for (const KeptRun& one : runs)
      if (one.run.test == test && is_plain(one.run)) recent.push_back(recent_of(one));
    return newest(std::move(recent), most);
  }

  Result<std::vector<RecentRun>> recent_trials(const TestId& test, const std::string& purpose,
                                               size_t most) override {
    std::vector<RecentRun> recent;
    for (const KeptRun& one : runs)
      if (one.run.test == test && !is_plain(one.run) &&
          (purpose.empty() || one.run.purpose == purpose))
        recent.push_back(recent_of(one));
    return newest(std::move(recent), most);
  }

  Result<void> record_functions(SessionId session,
                                std::span<const FunctionsRecord> traces) override {
    for (const FunctionsRecord& trace : traces) executed[trace.test] = {session, trace};
    return {};
  }

  Result<FunctionTraces> latest_functions(const std::string& pattern) override {
    FunctionTraces all;
    std::map<FunctionId, uint32_t> numbers;
    for (const auto& [test, kept] : executed) {
      if (!glob_match(pattern, to_string(test))) continue;
      const auto& [session, trace] = kept;
      all.tests.push_back({test,
                           trace.started,
                           sessions[static_cast<size_t>(session - 1)].surroundings.commit,
                           {}});
      for (const FunctionId& function : trace.functions) {
        const auto [known, is_new] =
            numbers.try_emplace(function, static_cast<uint32_t>(numbers.size()));
        if (is_new) all.functions.push_back(function);
        all.tests.back().functions.push_back(known->second);
      }
      std::ranges::sort(all.tests.back().functions);
    }
    return all;
  }

  Result<std::vector<TestId>> find_tests(const std::string& pattern, size_t most) override {
    std::set<TestId> tests;
    for (const KeptRun& one : runs)
      if (glob_match(pattern, to_string(one.run.test))) tests.insert(one.run.test);
    std::vector<TestId> found(tests.begin(), tests.end());
    if (found.size() > most) found.resize(most);
    return found;
  }

  Result<std::optional<std::string>> latest_output(const TestId& test,
                                                   const std::string& signature) override {
    std::optional<std::string> latest;
    for (const KeptRun& one : runs)
      if (one.run.test == test && one.run.signature == signature && !one.run.output.empty())
        latest = one.run.output;
    return latest;
  }

  Result<RunCounts> count_runs(const TestId& test, const std::string& signature,
                               const Window& window) override {
    RunCounts counts;
    for (const KeptRun& one : runs) {
      if (one.run.test != test || !counts_in(one, window)) continue;
      counts.passes += one.run.outcome == OutcomeKind::pass;
      if (!is_failing(one.run.outcome)) continue;
      ++counts.failures;
      counts.with_signature += one.run.signature == signature;
      counts.last_failure =
          std::max(counts.last_failure.value_or(TimePoint::min()), one.run.started);
    }
    return counts;
  }

  LifecycleStore& lifecycle() override { return *this; }

  Result<std::vector<FlakyFailure>> flaky_failures(const Window& window, size_t most) override {
    std::vector<FlakyFailure> all;
    for (const auto& [key, group] : incidents_in(window)) {
      const auto& [test, signature] = key;
      FlakyFailure one;
      one.test = test;
      one.signature = signature;
      std::set<std::string> builds;
      for (const KeptRun* run : group) add(one, builds, *run);
      one.builds = static_cast<int64_t>(builds.size());
      all.push_back(std::move(one));
    }
    std::ranges::stable_sort(all, std::greater(), &FlakyFailure::builds);
    if (all.size() > most) all.resize(most);
    return all;
  }

  Result<int64_t> count_suppressed_builds(const TestId& test, const std::string& signature,
                                          const Window& window) override {
    std::set<std::string> builds;
    for (const auto& [id, of_test, known] : suppressed) {
      const SessionRecord& session = sessions[static_cast<size_t>(id - 1)];
      const bool is_in = session.started >= window.from && session.started < window.until;
      if (is_in && of_test == test && known == signature) builds.insert(build_of(session));
    }
    return static_cast<int64_t>(builds.size());
  }

  Result<std::vector<Prevalence>> prevalence(const Window& window) override {
    Prevalence row;
    row.project = project;
    row.tests = static_cast<int64_t>(tests_in(window).size());
    std::map<std::string, std::pair<TimePoint, TimePoint>> builds;
    std::set<std::string> failed, flaky_builds;
    std::set<TestId> flaky_tests;
    std::set<std::pair<std::string, TestId>> flaky_failures;
    for (const KeptRun& one : runs) {
      if (!counts_in(one, window)) continue;
      ++row.runs;
      const TimePoint end = one.run.started + one.run.duration;
      auto [build, is_new] = builds.try_emplace(build_of(one), one.run.started, end);
      build->second.first = std::min(build->second.first, one.run.started);
      build->second.second = std::max(build->second.second, end);
      if (is_failing(one.run.outcome)) failed.insert(build_of(one));
      if (!is_flaky(one)) continue;
      flaky_builds.insert(build_of(one));
      flaky_tests.insert(one.run.test);
      flaky_failures.insert({build_of(one), one.run.test});
    }
    row.builds = static_cast<int64_t>(builds.size());
    row.failed_builds = static_cast<int64_t>(failed.size());
    row.flaky_builds = static_cast<int64_t>(flaky_builds.size());
    row.flaky_tests = static_cast<int64_t>(flaky_tests.size());
    row.flaky_failures = static_cast<int64_t>(flaky_failures.size());
    row.suppressed = static_cast<int64_t>(suppressed.size());
    std::vector<Duration> times;
    for (const auto& [name, span] : builds)
      times.push_back(std::chrono::duration_cast<Duration>(span.second - span.first));
    row.median_build = median_of(times);
    return std::vector<Prevalence>{row};
  }

  Result<void> note(const LifecycleStep& step) override {
    const auto key = [](const LifecycleStep& one) {
      return std::tuple(one.test, one.at, one.kind, one.signature);
    };
    if (std::ranges::none_of(known_steps, [&](const auto& one) { return key(one) == key(step); }))
      known_steps.push_back(step);
    return {};
  }

  Result<std::vector<LifecycleStep>> steps(const Window& window) override {
    std::vector<LifecycleStep> found;
    for (const LifecycleStep& step : known_steps)
      if (step.at >= window.from && step.at < window.until) found.push_back(step);
    std::ranges::stable_sort(found, {}, &LifecycleStep::at);
    return found;
  }

  Result<std::vector<CauseRecord>> causes() override { return known_causes; }

  Result<int64_t> save_cause(const CauseRecord& cause) override {
    for (CauseRecord& known : known_causes)
      if (known.id == cause.id) {
        known = cause;
        return cause.id;
      }
    known_causes.push_back(cause);
    if (cause.id == 0) known_causes.back().id = static_cast<int64_t>(known_causes.size());
    return known_causes.back().id;
  }

  Result<RetentionCount> forget(const Retention& retention, TimePoint now) override {
    RetentionCount gone;
    for (const auto& kept : {retention.passing_runs, retention.failing_runs})
      if (kept) horizon = std::max(horizon.value_or(TimePoint::min()), now - *kept);
    for (KeptRun& one : runs) {
      if (!retention.outputs || one.run.output.empty()) continue;
      if (one.run.started >= now - *retention.outputs) continue;
      one.run.output.clear();
      ++gone.outputs;
    }
    gone.trials = static_cast<int64_t>(std::erase_if(runs, [&](const KeptRun& one) {
      return !is_plain(one.run) && retention.trials && one.run.started < now - *retention.trials;
    }));
    gone.runs = static_cast<int64_t>(std::erase_if(runs, [&](const KeptRun& one) {
      if (!is_plain(one.run)) return false;
      const auto& keep =
          is_failing(one.run.outcome) ? retention.failing_runs : retention.passing_runs;
      return keep && one.run.started < now - *keep;
    }));
    return gone;
  }

  Result<void> visit(const Visitor& visitor) override {
    for (size_t i = 0; i < sessions.size(); ++i) {
      if (auto seen = visitor.session(sessions[i]); !seen) return seen;
      for (const KeptRun& one : runs)
        if (one.session == static_cast<SessionId>(i + 1))
          if (auto seen = visitor.run(one.run); !seen) return seen;
      for (const auto& [session, test, signature] : suppressed)
        if (visitor.suppression && session == static_cast<SessionId>(i + 1))
          if (auto seen = visitor.suppression(test, signature); !seen) return seen;
    }
    return {};
  }

  Result<std::optional<TimePoint>> forgotten_before() override { return horizon; }

 private:
  RecentRun recent_of(const KeptRun& one) const {
    const Surroundings& from = session_of(one).surroundings;
    return {one.run.started, one.run.outcome, one.run.duration, one.run.attempt, one.run.signature,
            from.commit,     from.branch,     from.machine,     one.run.purpose, one.run.plan};
  }

  static std::vector<RecentRun> newest(std::vector<RecentRun> recent, size_t most) {
    std::ranges::stable_sort(recent, std::greater(), &RecentRun::started);
    if (recent.size() > most) recent.resize(most);
    return recent;
  }

  bool is_meant(SessionId id, const SessionQuestion& question) const {
    const SessionRecord& session = sessions[static_cast<size_t>(id - 1)];
    const auto fits = [](const std::string& wanted, const std::string& value) {
      return wanted.empty() || wanted == value;
    };
    return session.command_line.starts_with(question.command) &&
           fits(question.machine, session.surroundings.machine) &&
           fits(question.build, session.surroundings.build);
  }

  SessionTests tests_of(SessionId id) const {
    std::map<TestId, bool> ran;
    for (const KeptRun& one : runs)
      if (one.session == id && is_plain(one.run)) ran[one.run.test] |= is_failing(one.run.outcome);
    const SessionRecord& session = sessions[static_cast<size_t>(id - 1)];
    SessionTests tests{session.started, session.command_line, finished.contains(id), {}};
    for (const auto& [test, failed] : ran) tests.tests.push_back({test, failed});
    return tests;
  }

  const SessionRecord& session_of(const KeptRun& one) const {
    return sessions[static_cast<size_t>(one.session - 1)];
  }

  std::string build_of(const KeptRun& one) const { return build_of(session_of(one)); }

  static std::string build_of(const SessionRecord& session) {
    return session.surroundings.build.empty() ? "session " + session.uuid
                                              : "build " + session.surroundings.build;
  }

  static bool counts_in(const KeptRun& one, const Window& window) {
    return is_plain(one.run) && one.run.started >= window.from && one.run.started < window.until;
  }

  bool on_same_code(const KeptRun& a, const KeptRun& b) const {
    if (build_of(a) == build_of(b)) return true;
    const Surroundings &of_a = session_of(a).surroundings, &of_b = session_of(b).surroundings;
    return !of_a.commit.empty() && of_a.commit == of_b.commit && !of_a.dirty && !of_b.dirty;
  }

  bool is_flaky(const KeptRun& failed) const {
    if (!is_failing(failed.run.outcome)) return false;
    return std::ranges::any_of(runs, [&](const KeptRun& one) {
      return one.run.test == failed.run.test && one.run.outcome == OutcomeKind::pass &&
             is_plain(one.run) && on_same_code(one, failed);
    });
  }

  std::map<std::pair<TestId, std::string>, std::vector<const KeptRun*>> incidents_in(
      const Window& window) const {
    std::map<std::pair<TestId, std::string>, std::vector<const KeptRun*>> groups;
    for (const KeptRun& one : runs)
      if (counts_in(one, window) && is_flaky(one))
        groups[{one.run.test, one.run.signature}].push_back(&one);
    return groups;
  }

  void add(FlakyFailure& total, std::set<std::string>& builds, const KeptRun& one) const {
    const bool is_first = total.runs++ == 0;
    builds.insert(build_of(one));
    total.suppressed_builds +=
        suppressed.contains({one.session, one.run.test, one.run.signature}) ? 1 : 0;
    total.outcome = one.run.outcome;
    total.failure = one.run.failure.value_or(Failure{});
    total.wasted += one.run.duration;
    if (is_first || one.run.started < total.first) {
      total.first = one.run.started;
      total.first_commit = session_of(one).surroundings.commit;
    }
    if (is_first || one.run.started > total.last) {
      total.last = one.run.started;
      total.last_commit = session_of(one).surroundings.commit;
    }
  }

  std::set<TestId> tests_in(const Window& window) const {
    std::set<TestId> tests;
    for (const KeptRun& one : runs)
      if (counts_in(one, window)) tests.insert(one.run.test);
    return tests;
  }

  static Duration median_of(std::vector<Duration> times) {
    if (times.empty()) return {};
    std::ranges::sort(times);
    return times[(times.size() - 1) / 2];
  }

  static DurationSummary durations_of(std::vector<Duration> times) {
    DurationSummary summary;
    if (times.empty()) return summary;
    std::ranges::sort(times);
    Duration sum{};
    for (const Duration time : times) sum += time;
    summary.runs = static_cast<int64_t>(times.size());
    summary.min = times.front();
    summary.max = times.back();
    summary.median = median_of(times);
    summary.p95 = times[(times.size() - 1) * 95 / 100];
    summary.mean = sum / summary.runs;
    return summary;
  }

  TestSummary summary_of(const TestId& test) const {
    TestSummary summary;
    summary.test = test;
    std::vector<Duration> passing, failing;
    for (const KeptRun& one : runs) {
      if (one.run.test != test || !is_plain(one.run)) continue;
      summary.skips += one.run.outcome == OutcomeKind::skipped;
      if (one.run.outcome == OutcomeKind::pass) passing.push_back(one.run.duration);
      if (is_failing(one.run.outcome)) failing.push_back(one.run.duration);
    }
    summary.passes = static_cast<int64_t>(passing.size());
    summary.failures = static_cast<int64_t>(failing.size());
    summary.pass_durations = durations_of(passing);
    summary.fail_durations = durations_of(failing);
    return summary;
  }

  std::set<std::tuple<SessionId, TestId, TimePoint, int>> keys_;
};

}  // namespace unflake
