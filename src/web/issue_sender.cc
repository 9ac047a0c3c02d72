#include "web/issue_sender.h"

#include <fmt/format.h>

namespace unflake {

Result<void> IssueSender::send(std::span<const IssueAction> plan, std::span<CauseIssue> causes,
                               TimePoint now, SentActions& sent) {
  for (const IssueAction& action : plan) {
    if (auto done = act(action, causes[action.cause], now, sent); !done) return done;
    ++sent.done;
  }
  return {};
}

Result<void> IssueSender::act(const IssueAction& action, CauseIssue& cause, TimePoint now,
                              SentActions& sent) {
  switch (action.kind) {
    case IssueAction::Kind::open:
      return open(action, cause, now, sent);
    case IssueAction::Kind::adopt:
      cause.cause.url = action.issue.url;
      return save(cause, action.cause, LifecycleStep::Kind::report_opened, now, "",
                  "the issue was there already");
    case IssueAction::Kind::rewrite:
      return forge_.rewrite(action.number, action.text);
    case IssueAction::Kind::comment:
      return forge_.comment(action.number, action.text);
    case IssueAction::Kind::close:
      return close(action, cause, now);
    case IssueAction::Kind::reopen:
      return reopen(action, cause, now);
    case IssueAction::Kind::note_closed:
      return note_closed(action, cause, now);
  }
  return {};
}

// Two jobs may open one at the same time. Both look again afterwards, and the later one gives way.
Result<void> IssueSender::open(const IssueAction& action, CauseIssue& cause, TimePoint now,
                               SentActions& sent) {
  auto made = forge_.open(action.title, action.text);
  if (!made) return made.error();
  cause.cause.url = made->url;
  if (auto saved = save(cause, action.cause, LifecycleStep::Kind::report_opened, now, "", "");
      !saved)
    return saved;
  ForgeIssue first;
  const auto second = is_second(*made, cause, first);
  if (!second) return second.error();
  if (!*second) return {};
  sent.notes.push_back(fmt::format(
      "another job had opened {} for the same cause: {} is closed again", first.url, made->url));
  cause.cause.url = first.url;
  if (auto saved = store_.save_cause(cause.cause); !saved) return saved.error();
  if (auto told = forge_.comment(made->number, "A duplicate of " + first.url + "."); !told)
    return told;
  return forge_.close(made->number);
}

Result<bool> IssueSender::is_second(const ForgeIssue& mine, const CauseIssue& cause,
                                    ForgeIssue& first) {
  const auto issues = forge_.issues();
  if (!issues) return issues.error();
  CauseIssue without_address = cause;
  without_address.cause.url.clear();
  const ForgeIssue* found = find_issue(without_address, project_, *issues);
  if (!found || found->number >= mine.number || !found->is_open) return false;
  first = *found;
  return true;
}

Result<void> IssueSender::note_closed(const IssueAction& action, CauseIssue& cause, TimePoint now) {
  const auto commit = forge_.closing_commit(action.number);
  if (!commit) return commit.error();
  const TimePoint at = action.issue.closed.value_or(now);
  cause.cause.state = CauseRecord::State::closed;
  cause.cause.closed = at;
  return save(cause, action.cause, LifecycleStep::Kind::report_closed, at, *commit,
              "the issue was closed");
}

Result<void> IssueSender::close(const IssueAction& action, CauseIssue& cause, TimePoint now) {
  if (auto closed = forge_.close(action.number); !closed) return closed;
  cause.cause.state = CauseRecord::State::closed;
  cause.cause.closed = cause.cause.closed.value_or(now);
  return save(cause, action.cause, LifecycleStep::Kind::report_closed, now, "", action.why);
}

// Linking has counted the return already when it was closed in the history.
Result<void> IssueSender::reopen(const IssueAction& action, CauseIssue& cause, TimePoint now) {
  if (auto opened = forge_.reopen(action.number); !opened) return opened;
  if (cause.cause.state == CauseRecord::State::closed) {
    cause.cause.state = CauseRecord::State::open;
    cause.cause.closed.reset();
    ++cause.cause.reopened;
  }
  return save(cause, action.cause, LifecycleStep::Kind::report_reopened, now, cause.last_commit,
              action.why);
}

Result<void> IssueSender::save(CauseIssue& cause, size_t number, LifecycleStep::Kind kind,
                               TimePoint at, const std::string& commit, const std::string& reason) {
  const auto id = store_.save_cause(cause.cause);
  if (!id) return id.error();
  cause.cause.id = *id;
  for (LifecycleStep step : failures_(number)) {
    step.kind = kind;
    step.at = at;
    step.commit = commit;
    step.reason = reason;
    step.owner = cause.owner;
    step.url = cause.cause.url;
    if (auto noted = store_.note(step); !noted) return noted;
  }
  return {};
}

}  // namespace unflake
