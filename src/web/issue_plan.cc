#include "web/issue_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "report/layout.h"
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

// An @ is left to owners, whose form is checked; an issue must not mention anybody else.
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

  // Whoever a body mentions is notified once, however often it is rewritten.
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

namespace {

constexpr std::string_view begin_mark = "<!-- unflake:cause:";
constexpr std::string_view signatures_mark = "<!-- unflake:signatures:";
constexpr std::string_view told_mark = "<!-- unflake:told:";
constexpr std::string_view end_mark = "<!-- unflake:end -->";
constexpr std::string_view close = " -->";
constexpr size_t most_signatures = 100;

// Letters and digits stay; nothing else can end a comment or a field.
std::string encoded(std::string_view text) {
  std::string safe;
  for (const char c : text.substr(0, 200)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    safe += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return safe;
}

std::string decoded(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    unsigned value = 0;
    const char* from = text.data() + at + 1;
    if (text[at] == '%' && at + 2 < text.size() &&
        std::from_chars(from, from + 2, value, 16).ptr == from + 2) {
      plain += static_cast<char>(value);
      at += 2;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

struct Part {
  size_t from = 0, to = 0;
};

// The last one: whoever quotes an issue in another one puts the quotation first.
std::optional<Part> part_in(std::string_view body) {
  const size_t end = body.rfind(end_mark);
  if (end == std::string_view::npos) return std::nullopt;
  const size_t from = body.rfind(begin_mark, end);
  if (from == std::string_view::npos) return std::nullopt;
  return Part{from, end + end_mark.size()};
}

std::vector<std::string> fields_of(std::string_view text, std::string_view mark, char separator) {
  const size_t from = text.find(mark);
  if (from == std::string_view::npos) return {};
  const size_t start = from + mark.size();
  const size_t end = text.find(close, start);
  if (end == std::string_view::npos || end - start > 10'000) return {};
  std::vector<std::string> fields;
  for (const std::string& field : split(text.substr(start, end - start), separator))
    fields.push_back(decoded(field));
  return fields;
}

std::string head_of(const IssueMarks& marks) {
  std::vector<std::string> signatures;
  for (const std::string& one : marks.signatures) {
    if (signatures.size() == most_signatures) break;
    signatures.push_back(encoded(one));
  }
  return fmt::format("{}{}:{}{}\n{}{}{}\n{}{}:{}{}\n\n", begin_mark, marks.cause,
                     encoded(marks.project), close, signatures_mark, join(signatures, ","), close,
                     told_mark, encoded(marks.owner), encoded(marks.expiry), close);
}

}  // namespace

std::optional<IssueMarks> marks_in(std::string_view body) {
  const auto part = part_in(body);
  if (!part) return std::nullopt;
  const std::string_view text = body.substr(part->from, part->to - part->from);
  IssueMarks marks;
  const auto cause = fields_of(text, begin_mark, ':');
  if (cause.size() != 2) return std::nullopt;
  const char* end = cause[0].data() + cause[0].size();
  if (std::from_chars(cause[0].data(), end, marks.cause).ptr != end || cause[0].empty())
    return std::nullopt;
  marks.project = cause[1];
  for (std::string& one : fields_of(text, signatures_mark, ','))
    if (!one.empty()) marks.signatures.push_back(std::move(one));
  if (auto told = fields_of(text, told_mark, ':'); told.size() == 2) {
    marks.owner = std::move(told[0]);
    marks.expiry = std::move(told[1]);
  }
  return marks;
}

std::string marked_part(const IssueMarks& marks, std::string_view text, size_t most) {
  constexpr std::string_view cut_note =
      "\n\n(The rest is left out: the issue would be too long.)\n";
  const std::string head = head_of(marks);
  const size_t fixed = head.size() + end_mark.size() + cut_note.size() + 1;
  const size_t room = most > fixed ? most - fixed : 0;
  std::string shown(text);
  if (shown.size() > room) {
    // At the end of a paragraph, so that no block or table is left open.
    const size_t paragraph = shown.rfind("\n\n", room);
    shown.resize(paragraph == std::string::npos || paragraph > room ? 0 : paragraph);
    shown += cut_note;
  }
  return head + shown + "\n" + std::string(end_mark);
}

std::string with_part(std::string_view body, std::string_view part) {
  const auto old = part_in(body);
  if (old) return std::string(body.substr(0, old->from)).append(part).append(body.substr(old->to));
  std::string whole(body);
  if (!whole.empty()) whole += "\n\n";
  return whole.append(part);
}

size_t size_without_part(std::string_view body) {
  const auto part = part_in(body);
  return part ? body.size() - (part->to - part->from) : body.size() + (body.empty() ? 0 : 2);
}

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
