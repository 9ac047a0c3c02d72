#include "cli/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "app/proving.h"
#include "app/repro_file.h"
#include "report/explanation_pages.h"
#include "report/search_text.h"
#include "study/study.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;
using FailureKey = std::pair<TestId, std::string>;

constexpr size_t most_gathered = 50'000;
constexpr size_t most_tests_of_a_cause = 20;
constexpr size_t most_repros = 2'000;
constexpr auto remembered = std::chrono::days(365);

struct KnownRepro {
  std::string name;  // of its file
  Repro repro;
};

std::map<FailureKey, KnownRepro> repros_of(const Project& project) {
  std::map<FailureKey, KnownRepro> repros;
  std::error_code failed;
  for (fs::directory_iterator at(project.path("repro"), failed), end;
       !failed && at != end && repros.size() < most_repros; at.increment(failed)) {
    if (at->path().extension() != ".json") continue;
    if (auto repro = load_repro(at->path().string())) {
      FailureKey key{repro->test, repro->signature};
      repros.emplace(std::move(key), KnownRepro{at->path().stem().string(), std::move(*repro)});
    }
  }
  return repros;
}

// The slack has its own place.
std::string how_often(std::vector<std::string> figures) {
  std::erase_if(figures, [](const std::string& figure) { return figure.starts_with("slack:"); });
  return join(figures, "; ");
}

// A failure that is reported has been seen, whatever was known about it when it was reproduced.
ReportedRepro reported(KnownRepro known) {
  known.repro.was_seen = true;
  const Explanation explanation = explain(known.repro, nullptr, nullptr);
  const ExplanationWords words = words_of({known.repro, explanation, nullptr, nullptr, {}, {}});
  ReportedRepro repro;
  repro.replay = "unflake replay " + shell_quote(known.name);
  repro.explain = "unflake explain " + shell_quote(known.name);
  repro.how_often = how_often(words.figures);
  repro.slack = slack_words(known.repro);
  if (explanation.causes.front().kind != RootCauseKind::unknown) {
    repro.category = words.cause;
    repro.advice = words.advice;
  }
  repro.story = words.story;
  return repro;
}

class Gathering {
 public:
  Gathering(Store& store, const Project& project, const ReportRequest& request)
      : store_(store), project_(project), request_(request), today_(day_of(request.now)) {}

  Result<GatheredReport> operator()(const std::string& project_name, const Contains& contains) {
    if (auto read = read_files(); !read) return read.error();
    if (auto asked = ask_store(contains); !asked) return asked.error();
    if (auto asked = ask_trend(); !asked) return asked.error();
    find_claims();
    for (const LinkedCause& cause : all_.causes) add_cause(cause);
    if (auto counted = count_window(project_name); !counted) return counted.error();
    if (auto chosen = choose_causes(); !chosen) return chosen.error();
    return std::move(all_);
  }

 private:
  Day first_day() const { return today_ - std::chrono::days(request_.days - 1); }
  Window window() const { return {TimePoint(first_day()), TimePoint::max()}; }

  Result<void> read_files() {
    auto quarantine = load_quarantine(request_.quarantine);
    if (!quarantine) return quarantine.error();
    quarantine_ = std::move(*quarantine);
    owners_ = load_owners(project_.root);
    repros_ = repros_of(project_);
    return {};
  }

  Result<void> ask_store(const Contains& contains) {
    const Window year{std::min(TimePoint(first_day()), request_.now - remembered),
                      TimePoint::max()};
    auto failures = store_.lifecycle().flaky_failures(year, most_gathered);
    if (!failures) return failures.error();
    auto current = store_.lifecycle().flaky_failures(window(), most_gathered);
    if (!current) return current.error();
    auto known = store_.lifecycle().causes();
    if (!known) return known.error();
    auto steps = store_.lifecycle().steps(year);
    if (!steps) return steps.error();
    for (FlakyFailure& one : *current) current_.emplace(FailureKey(one.test, one.signature), one);
    all_.failures = std::move(*failures);
    all_.steps = std::move(*steps);
    all_.causes = link_causes(all_.failures, *known, request_.now,
                              [&](const CauseRecord& closed, const FlakyFailure& failure) {
                                const std::string fix = fix_of(closed, failure);
                                return fix.empty() || contains(failure.last_commit, fix);
                              });
    return {};
  }

  // The commit that was said to repair the failure when its report was closed.
  std::string fix_of(const CauseRecord& closed, const FlakyFailure& failure) const {
    std::string commit;
    for (const LifecycleStep& step : all_.steps)
      if (step.kind == LifecycleStep::Kind::report_closed && step.test == failure.test &&
          step.signature == failure.signature && closed.closed && step.at >= *closed.closed)
        commit = step.commit;
    return commit;
  }

  Result<void> ask_trend() {
    if (!request_.trend || all_.failures.empty()) return {};
    for (Day day = first_day(); day <= today_; day += std::chrono::days(1)) {
      const auto hits = store_.lifecycle().flaky_failures(
          {TimePoint(day), TimePoint(day + std::chrono::days(1))}, most_gathered);
      if (!hits) return hits.error();
      const auto number = static_cast<size_t>((day - first_day()).count());
      for (const FlakyFailure& one : *hits) {
        auto& days = trend_[FailureKey(one.test, one.signature)];
        days.resize(static_cast<size_t>(request_.days));
        days[number] = one.builds;
      }
    }
    return {};
  }

  std::string owner_of(const FlakyFailure& failure) const {
    const auto owners = owners_.of(repository_path(failure.failure.file, project_.root));
    if (!owners.empty()) return join(owners, " ");
    const QuarantineEntry* entry = quarantine_.find(failure.test, failure.signature);
    return entry ? entry->owner : "";
  }

  ReportedTest test_of(const FlakyFailure& failure, const FlakyFailure* current) const {
    ReportedTest test;
    test.test = failure.test;
    test.signature = failure.signature;
    test.headline = headline(failure.failure);
    if (current) {
      test.builds = current->builds;
      test.suppressed_builds = current->suppressed_builds;
      test.wasted = current->wasted;
    }
    test.first = failure.first;
    test.first_commit = failure.first_commit;
    test.last = failure.last;
    test.last_commit = failure.last_commit;
    test.owner = owner_of(failure);
    if (const QuarantineEntry* entry = quarantine_.find(failure.test, failure.signature))
      test.quarantined_until = entry->expires;
    return test;
  }

  void add_up(ReportedCause& cause, const ReportedTest& test) const {
    cause.fewest_builds = std::max(cause.fewest_builds, test.builds);
    cause.most_builds += test.builds;
    cause.suppressed_builds += test.suppressed_builds;
    cause.wasted += test.wasted;
    if (cause.tests.empty() || test.first < cause.first) {
      cause.first = test.first;
      cause.first_commit = test.first_commit;
    }
    cause.last = cause.tests.empty() ? test.last : std::max(cause.last, test.last);
    const auto days = trend_.find({test.test, test.signature});
    if (days == trend_.end()) return;
    cause.hits_per_day.resize(days->second.size());
    for (size_t day = 0; day < days->second.size(); ++day)
      cause.hits_per_day[day] += days->second[day];
  }

  Result<void> count_runs(ReportedCause& cause) {
    std::set<TestId> counted;
    for (ReportedTest& test : cause.tests) {
      const auto counts = store_.count_runs(test.test, test.signature, window());
      if (!counts) return counts.error();
      test.failures = counts->with_signature;
      test.runs = counts->passes + counts->failures;
      test.runs_cut = counts->cut;
      cause.failures += test.failures;
      if (counted.insert(test.test).second) cause.runs += test.runs;
    }
    return {};
  }

  // As in `unflake stats`: for each of its failures somebody closed a report or lifted a
  // quarantine, and it has not failed since.
  bool is_claimed_over(const LinkedCause& linked) const {
    return std::ranges::all_of(linked.failures, [&](size_t number) {
      const FlakyFailure& failure = all_.failures[number];
      return claimed_over_.contains({failure.test, failure.signature});
    });
  }

  void find_claims() {
    for (const FlakyEpisode& episode : episodes_of(all_.failures, all_.steps)) {
      const FailureKey key(episode.test, episode.signature);
      is_settled(episode) ? void(claimed_over_.insert(key)) : void(claimed_over_.erase(key));
    }
  }

  void add_cause(const LinkedCause& linked) {
    ReportedCause cause;
    cause.id = linked.record.id;
    cause.title = linked.record.title;
    cause.is_open = linked.record.state == CauseRecord::State::open && !is_claimed_over(linked);
    cause.reopened = linked.record.reopened;
    cause.issue = linked.record.url;
    bool now = false;
    for (const size_t number : linked.failures) {
      const FlakyFailure& failure = all_.failures[number];
      const auto found = current_.find({failure.test, failure.signature});
      now = now || found != current_.end();
      const ReportedTest test =
          test_of(failure, found == current_.end() ? nullptr : &found->second);
      add_up(cause, test);
      cause.tests.push_back(test);
    }
    std::ranges::stable_sort(cause.tests, std::greater(), &ReportedTest::builds);
    if (cause.tests.size() > most_tests_of_a_cause) {
      cause.tests_left_out = cause.tests.size() - most_tests_of_a_cause;
      cause.tests.resize(most_tests_of_a_cause);
    }
    add_repro(cause);
    all_.fails_now.push_back(now);
    all_.reported.push_back(std::move(cause));
  }

  void add_repro(ReportedCause& cause) const {
    for (const ReportedTest& test : cause.tests) {
      const auto found = repros_.find({test.test, test.signature});
      if (found == repros_.end()) continue;
      cause.repro = reported(found->second);
      cause.repro->patch = proposed_patch(project_, found->second.name);
      return;
    }
    if (!cause.tests.empty())
      cause.next = fmt::format("unflake reproduce {} --failure {}",
                               shell_quote(to_string(cause.tests.front().test)),
                               shell_quote(cause.tests.front().signature));
  }

  Result<void> count_window(const std::string& project_name) {
    CauseReport& report = all_.report;
    report.project = project_name;
    report.first_day = first_day();
    report.last_day = report.today = today_;
    report.written = request_.now;
    const auto rows = store_.lifecycle().prevalence(window());
    if (!rows) return rows.error();
    for (const Prevalence& row : *rows) {
      if (row.project != project_name) continue;
      report.runs = row.runs;
      report.builds = row.builds;
      report.flaky_builds = row.flaky_builds;
    }
    return {};
  }

  std::vector<size_t> worst_first() const {
    std::vector<size_t> order;
    for (size_t number = 0; number < all_.reported.size(); ++number)
      if (all_.fails_now[number]) order.push_back(number);
    std::ranges::stable_sort(order, [this](size_t a, size_t b) {
      const ReportedCause &left = all_.reported[a], &right = all_.reported[b];
      return std::tie(left.most_builds, left.last) > std::tie(right.most_builds, right.last);
    });
    return order;
  }

  // Runs are counted for what is shown: a history may have thousands of causes.
  Result<void> choose_causes() {
    const std::vector<size_t> order = worst_first();
    all_.shown.resize(all_.reported.size());
    for (size_t rank = 0; rank < order.size(); ++rank) {
      ReportedCause& cause = all_.reported[order[rank]];
      const bool is_shown = rank < request_.most;
      if (is_shown || !cause.issue.empty())
        if (auto counted = count_runs(cause); !counted) return counted;
      if (!is_shown) continue;
      all_.shown[order[rank]] = true;
      all_.report.causes.push_back(cause);
    }
    all_.report.causes_left_out = order.size() - all_.report.causes.size();
    return {};
  }

  Store& store_;
  const Project& project_;
  const ReportRequest& request_;
  Day today_;
  Quarantine quarantine_;
  Owners owners_;
  std::map<FailureKey, KnownRepro> repros_;
  std::map<FailureKey, FlakyFailure> current_;
  std::map<FailureKey, std::vector<int64_t>> trend_;
  std::set<FailureKey> claimed_over_;
  GatheredReport all_;
};

}  // namespace

Result<GatheredReport> gather_report(Store& store, const Project& project,
                                     const std::string& project_name, const ReportRequest& request,
                                     const Contains& contains) {
  return Gathering(store, project, request)(project_name, contains);
}

}  // namespace unflake
