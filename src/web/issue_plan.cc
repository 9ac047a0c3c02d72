#include "web/issue_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/markdown_text.h"
#include "util/text.h"

namespace unflake {
namespace {

bool shares_signature(const IssueMarks& marks, const CauseRecord& cause) {
  return std::ranges::any_of(marks.signatures, [&](const std::string& one) {
    return std::ranges::find(cause.signatures, one) != cause.signatures.end();
  });
}

// A number alone is not enough: a new history counts from 1 again.
bool is_about(const ForgeIssue& issue, const CauseIssue& cause, const std::string& project) {
  const auto marks = marks_in(issue.body);
  return marks && marks->project == project && shares_signature(*marks, cause.cause);
}

bool is_account(const std::string& word) {
  return word.size() > 1 && word.size() < 100 && word[0] == '@' &&
         word.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "0123456789-_./",
             1) == std::string::npos;
}

// An @ is left to owners, whose form is checked; nobody else is to be called by an issue.
std::string mention(const std::string& owners) {
  const auto words = split(owners, ' ');
  return std::ranges::all_of(words, is_account) ? owners : markdown_code(owners);
}

class IssuePlanner {
 public:
  IssuePlanner(size_t number, const CauseIssue& cause, const ForgeIssue* issue,
               const IssuePlanning& planning)
      : number_(number), cause_(cause), issue_(issue), planning_(planning) {}

  std::vector<IssueAction> operator()() {
    if (!issue_)
      open_new();
    else if (issue_->is_open)
      care_for_open();
    else
      care_for_closed();
    return std::move(actions_);
  }

 private:
  using Kind = IssueAction::Kind;

  bool is_over() const {
    return cause_.cause.state == CauseRecord::State::closed || !cause_.why_close.empty();
  }

  void open_new() {
    if (is_over() || !cause_.fails_now) return;
    const size_t room = planning_.limits.body;
    add(Kind::open, marked_part(marks(), text(), room), "no issue is about this cause yet");
    actions_.back().title = shorten(printable(cause_.title), planning_.limits.title - 16);
  }

  void care_for_open() {
    adopt();
    if (is_over()) {
      rewrite();
      const std::string why =
          cause_.why_close.empty() ? "The history says that it is over." : cause_.why_close;
      add(Kind::comment, "Closed by unflake. " + why, "it is told why");
      add(Kind::close, "", why);
      return;
    }
    if (!cause_.fails_now) return;
    if (cause_.came_back) tell_return();
    tell_news();
    rewrite();
  }

  void care_for_closed() {
    adopt();
    if (is_over()) return;
    const bool failed_since = issue_->closed && cause_.last_failure > *issue_->closed &&
                              planning_.has_fix(cause_.last_commit, *issue_);
    if (!failed_since && !cause_.came_back)
      return add(Kind::note_closed, "", "somebody has closed it: a fix is claimed");
    if (!cause_.came_back) add(Kind::note_closed, "", "somebody had closed it: a fix was claimed");
    add(Kind::reopen, "", "it failed again after it was closed");
    tell_return();
    tell_news();
    rewrite();
  }

  void adopt() {
    if (cause_.cause.url != issue_->url)
      add(Kind::adopt, "", "an issue with its mark is there already");
  }

  void tell_return() {
    add(Kind::comment, "This failure came back." + (cause_.past.empty() ? "" : " " + cause_.past),
        "news: it came back");
  }

  void tell_news() {
    const IssueMarks told = marks_in(issue_->body).value_or(IssueMarks{});
    const IssueMarks now = marks();
    if (!now.owner.empty() && now.owner != told.owner && !told.signatures.empty())
      add(Kind::comment, fmt::format("Owner is now {}.", mention(now.owner)),
          "news: another owner");
    if (!now.expiry.empty() && now.expiry != told.expiry)
      add(Kind::comment,
          fmt::format("The quarantine of this failure ends on {}. From then on it fails builds.",
                      now.expiry),
          "news: its quarantine ends soon");
  }

  void rewrite() {
    const size_t others = size_without_part(issue_->body);
    const size_t room = planning_.limits.body > others ? planning_.limits.body - others : 0;
    const std::string body = with_part(issue_->body, marked_part(marks(), text(), room));
    if (body == issue_->body || body.size() > planning_.limits.body) return;
    add(Kind::rewrite, body, "its figures have changed");
  }

  // Whoever is called by a body is told of it once, however often it is rewritten.
  std::string text() const {
    return cause_.owner.empty() ? cause_.text
                                : cause_.text + "\nOwner: " + mention(cause_.owner) + "\n";
  }

  IssueMarks marks() const {
    IssueMarks marks;
    marks.cause = cause_.cause.id;
    marks.project = planning_.project;
    marks.signatures = cause_.cause.signatures;
    marks.owner = cause_.owner;
    if (cause_.expires) marks.expiry = format_day(*cause_.expires);
    return marks;
  }

  void add(Kind kind, std::string text, std::string why) {
    IssueAction action;
    action.kind = kind;
    action.cause = number_;
    action.text = std::move(text);
    action.why = std::move(why);
    if (issue_) {
      action.number = issue_->number;
      action.issue = *issue_;
    }
    actions_.push_back(std::move(action));
  }

  size_t number_;
  const CauseIssue& cause_;
  const ForgeIssue* issue_;
  const IssuePlanning& planning_;
  std::vector<IssueAction> actions_;
};

}  // namespace

std::string_view to_string(IssueAction::Kind kind) {
  switch (kind) {
    case IssueAction::Kind::open:
      return "open";
    case IssueAction::Kind::adopt:
      return "adopt";
    case IssueAction::Kind::rewrite:
      return "update";
    case IssueAction::Kind::comment:
      return "comment";
    case IssueAction::Kind::close:
      return "close";
    case IssueAction::Kind::reopen:
      return "reopen";
    case IssueAction::Kind::note_closed:
      return "note";
  }
  return "?";
}

const ForgeIssue* find_issue(const CauseIssue& cause, const std::string& project,
                             std::span<const ForgeIssue> issues) {
  const ForgeIssue* best = nullptr;
  for (const ForgeIssue& issue : issues) {
    if (!cause.cause.url.empty() && issue.url == cause.cause.url) return &issue;
    if (!is_about(issue, cause, project)) continue;
    const bool better = !best || (issue.is_open && !best->is_open) ||
                        (issue.is_open == best->is_open && issue.number < best->number);
    if (better) best = &issue;
  }
  return best;
}

std::vector<IssueAction> plan_issues(std::span<const CauseIssue> causes,
                                     std::span<const ForgeIssue> issues,
                                     const IssuePlanning& planning) {
  std::vector<IssueAction> plan;
  for (size_t number = 0; number < causes.size(); ++number) {
    const ForgeIssue* issue = find_issue(causes[number], planning.project, issues);
    for (IssueAction& action : IssuePlanner(number, causes[number], issue, planning)())
      plan.push_back(std::move(action));
  }
  return plan;
}

}  // namespace unflake
