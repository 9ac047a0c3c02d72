#pragma once

#include "store/store.h"
#include "web/issue_plan.h"

namespace unflake {

struct SentActions {
  size_t done = 0;
  std::vector<std::string> notes;  // what turned out otherwise
};

// The failures that a cause stands for, whose lives are told in the history.
using FailuresOf = std::function<std::vector<LifecycleStep>(size_t cause)>;

// Does what was planned, in order. Each step is in the history before the next one
// begins, so that an error in the middle loses nothing. `causes` are kept up to date.
class IssueSender {
 public:
  IssueSender(Forge& forge, LifecycleStore& store, std::string project, FailuresOf failures)
      : forge_(forge),
        store_(store),
        project_(std::move(project)),
        failures_(std::move(failures)) {}

  // Always says how many steps were done.
  Result<void> send(std::span<const IssueAction> plan, std::span<CauseIssue> causes, TimePoint now,
                    SentActions& sent);

 private:
  Result<void> act(const IssueAction& action, CauseIssue& cause, TimePoint now, SentActions& sent);
  Result<void> open(const IssueAction& action, CauseIssue& cause, TimePoint now, SentActions& sent);
  Result<void> note_closed(const IssueAction& action, CauseIssue& cause, TimePoint now);
  Result<void> close(const IssueAction& action, CauseIssue& cause, TimePoint now);
  Result<void> reopen(const IssueAction& action, CauseIssue& cause, TimePoint now);
  Result<bool> is_second(const ForgeIssue& mine, const CauseIssue& cause, ForgeIssue& first);
  Result<void> save(CauseIssue& cause, size_t number, LifecycleStep::Kind kind, TimePoint at,
                    const std::string& commit, const std::string& reason);

  Forge& forge_;
  LifecycleStore& store_;
  std::string project_;
  FailuresOf failures_;
};

}  // namespace unflake
