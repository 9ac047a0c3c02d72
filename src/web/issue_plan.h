#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"
#include "util/time.h"
#include "web/forge.h"

namespace unflake {

// A cause as its issue should show it.
struct CauseIssue {
  CauseRecord cause;
  std::string title;
  std::string text;  // of the marked part
  std::string owner;
  std::optional<Day> expires;  // a quarantine that ends soon
  bool fails_now = false;      // in the window of the report
  TimePoint last_failure = TimePoint::min();
  std::string last_commit;
  bool came_back = false;  // since it was closed in the history
  std::string past;        // what happened to it before, for a comment
  std::string why_close;   // it may be closed, and why; empty: it may not
};

struct IssueAction {
  enum class Kind {
    open,
    adopt,    // an issue that already exists; only the history changes
    rewrite,  // the marked part of the body
    comment,
    close,
    reopen,
    note_closed  // somebody has closed it, which claims a fix; only the history changes
  };
  Kind kind = Kind::open;
  size_t cause = 0;    // by its place in the given list
  int64_t number = 0;  // of the issue; 0: to be opened
  std::string title;
  std::string text;  // the whole body, or the comment
  std::string why;
  ForgeIssue issue;  // as it was found
};

std::string_view to_string(IssueAction::Kind kind);

struct IssuePlanning {
  std::string project;
  ForgeLimits limits;
  // Whether a commit contains the one that closed an issue. Unknown counts as yes: a failure
  // after the fix is the likelier story.
  std::function<bool(const std::string& commit, const ForgeIssue& issue)> has_fix =
      [](const std::string&, const ForgeIssue&) { return true; };
};

// The issue of a cause: at the address that the history keeps, or with a mark that names one of its
// signatures. An open one before a closed one, then the oldest.
const ForgeIssue* find_issue(const CauseIssue& cause, const std::string& project,
                             std::span<const ForgeIssue> issues);

// What has to be done so that the issues say what the causes are. Done twice, the second
// time does nothing.
std::vector<IssueAction> plan_issues(std::span<const CauseIssue> causes,
                                     std::span<const ForgeIssue> issues,
                                     const IssuePlanning& planning);

// What an issue's body says to unflake, in comments that people do not see.
struct IssueMarks {
  int64_t cause = 0;
  std::string project;
  std::vector<std::string> signatures;  // by these it is found when the history was lost
  std::string owner;                    // who was notified
  std::string expiry;                   // which end of quarantine was announced; a day, or empty
  bool operator==(const IssueMarks&) const = default;
};

// Nothing when the body has no part of unflake's.
std::optional<IssueMarks> marks_in(std::string_view body);

// The part of a body that unflake writes: marks around a text, which is cut to `most` bytes.
std::string marked_part(const IssueMarks& marks, std::string_view text, size_t most);

// The body with its marked part replaced, or with one at its end. What people wrote stays.
std::string with_part(std::string_view body, std::string_view part);

// How many bytes a body takes without its marked part.
size_t size_without_part(std::string_view body);

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
