#include "cli/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "lifecycle/gate.h"
#include "report/layout.h"
#include "util/result.h"
#include "util/text.h"
#include "web/issue_plan.h"

namespace unflake {
namespace {

constexpr auto soon = std::chrono::days(7);
constexpr size_t most_events_told = 10;
constexpr size_t most_failures_of_a_cause = 20;

Result<std::unique_ptr<Forge>> open_forge(const IssueOptions& options) {
  ForgeOptions forge;
  forge.api = options.api;
  forge.wait = [](Duration pause) { std::this_thread::sleep_for(pause); };
  if (!options.github.empty()) {
    forge.repository = options.github;
    forge.token = environment_variable("GITHUB_TOKEN");
    if (forge.api.empty()) forge.api = environment_variable("GITHUB_API_URL");
    return open_github(std::move(forge));
  }
  forge.repository = options.gitlab;
  forge.token = environment_variable("GITLAB_TOKEN");
  if (forge.token.empty()) {
    forge.token = environment_variable("CI_JOB_TOKEN");
    forge.is_job_token = true;
  }
  if (forge.api.empty()) forge.api = environment_variable("CI_API_V4_URL");
  return open_gitlab(std::move(forge));
}

bool has_token(const IssueOptions& options) {
  for (const char* name : options.github.empty() ? std::vector{"GITLAB_TOKEN", "CI_JOB_TOKEN"}
                                                 : std::vector{"GITHUB_TOKEN"})
    if (!environment_variable(name).empty()) return true;
  return false;
}

std::string title_of(const ReportedCause& cause) {
  std::set<TestId> tests;
  for (const ReportedTest& test : cause.tests) tests.insert(test.test);
  if (tests.size() == 1)
    return fmt::format("Flaky test {}: {}", to_string(*tests.begin()), cause.title);
  return fmt::format("Flaky tests ({}): {}", tests.size() + cause.tests_left_out, cause.title);
}

std::string plain_commit(const std::string& commit) {
  std::string plain;
  for (const char c : commit.substr(0, 12))
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) plain += c;
  return plain;
}

// One for each failure that the cause stands for; what happened is to be filled in.
std::vector<LifecycleStep> steps_of(const GatheredReport& gathered, const LinkedCause& cause) {
  std::vector<LifecycleStep> steps;
  for (const size_t number : cause.failures) {
    if (steps.size() == most_failures_of_a_cause) break;
    LifecycleStep step;
    step.test = gathered.failures[number].test;
    step.signature = gathered.failures[number].signature;
    steps.push_back(std::move(step));
  }
  return steps;
}

void take_category(LinkedCause& cause, const ReportedCause& reported) {
  if (!reported.repro || reported.repro->category.empty()) return;
  if (reported.repro->category == cause.record.category) return;
  cause.record.category = reported.repro->category;
  cause.changed = true;
}

class IssueCare {
 public:
  IssueCare(Store& store, const GatheredReport& gathered) : store_(store), gathered_(gathered) {}

  // Causes that nobody can see and that need no issue are not mentioned.
  Result<std::vector<CauseIssue>> issues() {
    std::vector<CauseIssue> issues;
    for (size_t number = 0; number < gathered_.causes.size(); ++number) {
      const LinkedCause& linked = gathered_.causes[number];
      if (linked.failures.empty()) continue;
      if (!gathered_.shown[number] && linked.record.url.empty()) continue;
      auto issue = issue_of(number);
      if (!issue) return issue.error();
      numbers_.push_back(number);
      issues.push_back(std::move(*issue));
    }
    return issues;
  }

  std::vector<LifecycleStep> failures_of(size_t issue) const {
    return steps_of(gathered_, gathered_.causes[numbers_[issue]]);
  }

 private:
  Result<CauseIssue> issue_of(size_t number) {
    const LinkedCause& linked = gathered_.causes[number];
    ReportedCause reported = gathered_.reported[number];
    reported.issue.clear();  // it need not name itself
    CauseIssue issue;
    issue.cause = linked.record;
    issue.title = title_of(reported);
    issue.text = "Found by `unflake report`; what stands between the marks is rewritten.\n\n" +
                 cause_markdown(reported, gathered_.report.today);
    issue.fails_now = gathered_.fails_now[number];
    issue.came_back = linked.came_back;
    issue.past = past_of(linked);
    for (const ReportedTest& test : reported.tests) {
      if (issue.owner.empty()) issue.owner = test.owner;
      if (test.quarantined_until && *test.quarantined_until <= gathered_.report.today + soon)
        issue.expires =
            std::min(issue.expires.value_or(*test.quarantined_until), *test.quarantined_until);
    }
    for (const size_t failure : linked.failures)
      if (gathered_.failures[failure].last > issue.last_failure) {
        issue.last_failure = gathered_.failures[failure].last;
        issue.last_commit = gathered_.failures[failure].last_commit;
      }
    if (linked.record.url.empty() || linked.record.state == CauseRecord::State::closed)
      return issue;
    auto why = why_close(linked);
    if (!why) return why.error();
    issue.why_close = std::move(*why);
    return issue;
  }

  // The dates and commits of what was done about it; reasons are people's words and stay private.
  std::string past_of(const LinkedCause& linked) const {
    std::set<std::pair<TimePoint, std::string>> told;
    for (const LifecycleStep& step : gathered_.steps) {
      if (!is_of(step, linked)) continue;
      const std::string commit = plain_commit(step.commit);
      told.insert(
          {step.at, fmt::format("{} {}{}", format_day(day_of(step.at)), to_string(step.kind),
                                commit.empty() ? "" : " (commit " + commit + ")")});
    }
    std::vector<std::string> parts;
    for (const auto& [at, text] : told) parts.push_back(text);
    if (parts.size() > most_events_told) parts.erase(parts.begin(), parts.end() - most_events_told);
    return parts.empty() ? "" : "Before: " + join(parts, "; ") + ".";
  }

  bool is_of(const LifecycleStep& step, const LinkedCause& linked) const {
    return std::ranges::any_of(linked.failures, [&](size_t number) {
      const FlakyFailure& failure = gathered_.failures[number];
      return failure.test == step.test && failure.signature == step.signature;
    });
  }

  // Every one of its failures must be over: its quarantine was lifted since, or the runs since are
  // enough that its rate would have shown.
  Result<std::string> why_close(const LinkedCause& linked) {
    if (linked.failures.size() > most_failures_of_a_cause) return std::string();
    std::vector<std::string> reasons;
    for (const size_t number : linked.failures) {
      auto reason = why_over(gathered_.failures[number]);
      if (!reason) return reason.error();
      if (reason->empty()) return std::string();
      reasons.push_back(std::move(*reason));
    }
    return join(reasons, " ");
  }

  Result<std::string> why_over(const FlakyFailure& failure) {
    for (const LifecycleStep& step : gathered_.steps)
      if (step.kind == LifecycleStep::Kind::lifted && step.test == failure.test &&
          step.signature == failure.signature && step.at > failure.last)
        return fmt::format("Its quarantine was lifted on {}.", format_day(day_of(step.at)));
    const auto since = store_.count_runs(failure.test, failure.signature,
                                         {failure.last + Duration(1), TimePoint::max()});
    if (!since) return since.error();
    if (since->failures > 0) return std::string();
    const auto before = store_.count_runs(failure.test, failure.signature,
                                          {TimePoint::min(), failure.last + Duration(1)});
    if (!before) return before.error();
    const CleanRuns runs{since->passes, before->with_signature, before->passes + before->failures};
    return may_be_lifted(runs) ? "Clean since " + format_day(day_of(failure.last)) + ": " +
                                     clean_runs_text(runs) + "."
                               : std::string();
  }

  Store& store_;
  const GatheredReport& gathered_;
  std::vector<size_t> numbers_;  // the cause of each issue
};

// The list by label, and those that lost it but are known by their address.
Result<std::vector<ForgeIssue>> existing_issues(Forge& forge,
                                                const std::vector<CauseIssue>& causes) {
  auto issues = forge.issues();
  if (!issues) return issues;
  for (const CauseIssue& cause : causes) {
    const auto has_url = [&](const ForgeIssue& issue) { return issue.url == cause.cause.url; };
    if (cause.cause.url.empty() || std::ranges::any_of(*issues, has_url)) continue;
    auto found = forge.find(cause.cause.url);
    if (!found) return found.error();
    if (*found) issues->push_back(std::move(**found));
  }
  return issues;
}

// What must be read before anything can be planned, with or without --send.
Error with_next(Error error, const IssueOptions& options) {
  if (!error.next.empty()) return error;
  const bool is_github = !options.github.empty();
  error.next = fmt::format(
      "without --send, too, the issues that exist are read: check the network, the address ({} or "
      "--api) and {}; `unflake report --format md` needs none of these",
      is_github ? "GITHUB_API_URL" : "CI_API_V4_URL", is_github ? "GITHUB_TOKEN" : "GITLAB_TOKEN");
  return error;
}

void print_indented(Page& page, std::string_view text) {
  for (const std::string_view line : split_lines(text)) page.print("    | {}\n", printable(line));
}

void print_plan(Page& page, const std::vector<IssueAction>& plan,
                const std::vector<CauseIssue>& causes) {
  for (const IssueAction& action : plan) {
    const std::string which = action.number == 0 ? "a new issue" : printable(action.issue.url);
    page.print("{:<8} {}: {}\n", to_string(action.kind), which, printable(action.why));
    if (action.kind == IssueAction::Kind::open)
      page.print("    title: {}\n    label: {}\n", printable(action.title), issue_label);
    else
      page.print("    cause: {}\n", one_line(causes[action.cause].cause.title));
    if (!action.text.empty()) print_indented(page, action.text);
  }
}

void print_unsent(Page& page, size_t steps) {
  if (steps == 0)
    page.print("the issues are up to date\n");
  else
    page.print("\nnothing was sent: {} would be; --send does it\n",
               counted(static_cast<long long>(steps), "step"));
}

IssuePlanning planning_with(Forge& forge, const std::string& project_name,
                            const Contains& contains) {
  IssuePlanning planning{project_name, forge.limits(), {}};
  planning.has_fix = [&](const std::string& commit, const ForgeIssue& issue) {
    const auto fix = forge.closing_commit(issue.number);
    return !fix || fix->empty() || contains(commit, *fix);
  };
  return planning;
}

}  // namespace

Result<void> care_for_issues(Page& page, Store& store, GatheredReport& gathered,
                             const std::string& project_name, const IssueOptions& options,
                             const ReportRequest& request, const Contains& contains) {
  if (options.send && !has_token(options))
    return usage_error("there is no token to send with", "",
                       options.github.empty() ? "set GITLAB_TOKEN in the environment"
                                              : "set GITHUB_TOKEN in the environment");
  auto forge = open_forge(options);
  if (!forge) return forge.error();
  IssueCare care(store, gathered);
  auto causes = care.issues();
  if (!causes) return causes.error();
  const auto issues = existing_issues(**forge, *causes);
  if (!issues) return with_next(issues.error(), options);
  const auto plan = plan_issues(*causes, *issues, planning_with(**forge, project_name, contains));
  print_plan(page, plan, *causes);
  if (!options.send || plan.empty()) {
    print_unsent(page, plan.size());
    return {};
  }
  IssueSender sender(**forge, store.lifecycle(), project_name,
                     [&](size_t number) { return care.failures_of(number); });
  SentActions sent;
  const auto done = sender.send(plan, *causes, request.now, sent);
  for (const std::string& note : sent.notes) page.print("note: {}\n", printable(note));
  page.print("\n{} of {} done\n", sent.done, counted(static_cast<long long>(plan.size()), "step"));
  return done;
}

Result<void> save_causes(Store& store, GatheredReport& gathered, TimePoint now) {
  for (size_t number = 0; number < gathered.causes.size(); ++number) {
    LinkedCause& cause = gathered.causes[number];
    take_category(cause, gathered.reported[number]);
    if (!cause.changed) continue;
    const auto id = store.lifecycle().save_cause(cause.record);
    if (!id) return id.error();
    cause.record.id = gathered.reported[number].id = *id;
    if (!cause.came_back) continue;
    for (LifecycleStep& step : steps_of(gathered, cause)) {
      step.kind = LifecycleStep::Kind::report_reopened;
      step.at = now;
      step.url = cause.record.url;
      if (auto noted = store.lifecycle().note(step); !noted) return noted;
    }
  }
  return {};
}

}  // namespace unflake
