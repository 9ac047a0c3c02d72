#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "util/day.h"
#include "web/forge.h"
#include "web/issue_text.h"

namespace unflake {

// A cause as its issue should tell it.
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
    adopt,    // an issue that is there already; only the history changes
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
  // Whether a commit contains the one that closed an issue. Not known counts as yes: a failure
  // after the fix is the likelier story.
  std::function<bool(const std::string& commit, const ForgeIssue& issue)> has_fix =
      [](const std::string&, const ForgeIssue&) { return true; };
};

// The issue of a cause: at the address that the history keeps, or with a mark that names one of its
// signatures. An open one before a closed one, then the oldest.
const ForgeIssue* find_issue(const CauseIssue& cause, const std::string& project,
                             std::span<const ForgeIssue> issues);

// What has to be done so that the issues say what the causes are. Done twice, it is nothing the
// second time.
std::vector<IssueAction> plan_issues(std::span<const CauseIssue> causes,
                                     std::span<const ForgeIssue> issues,
                                     const IssuePlanning& planning);

}  // namespace unflake
