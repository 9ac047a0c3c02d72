#include <algorithm>

#include "util/json.h"
#include "util/text.h"
#include "web/forge.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

// What GitHub and GitLab call the same things.
struct Dialect {
  const char* service;
  ForgeLimits limits;
  const char *number, *url, *body, *open;  // of an issue
  const char* all_issues;                  // before the label
  const char* comments;
  const char *closings, *closing, *closing_commit;  // where, the member that says so, its commit
  const char* change;                               // the method that changes an issue
  Json labels, closed, reopened;
};

const Dialect& github_dialect() {
  static const Dialect dialect{
      .service = "GitHub",
      .limits = {256, 65536},
      .number = "number",
      .url = "html_url",
      .body = "body",
      .open = "open",
      .all_issues = "/issues?state=all&per_page=100&labels=",
      .comments = "/comments",
      .closings = "/events?per_page=100",
      .closing = "event",
      .closing_commit = "commit_id",
      .change = "PATCH",
      .labels = Json::array({issue_label}),
      .closed = {{"state", "closed"}, {"state_reason", "completed"}},
      .reopened = {{"state", "open"}, {"state_reason", "reopened"}},
  };
  return dialect;
}

// Servers that are too old to tell leave the commit out.
const Dialect& gitlab_dialect() {
  static const Dialect dialect{
      .service = "GitLab",
      .limits = {255, 1'048'576},
      .number = "iid",
      .url = "web_url",
      .body = "description",
      .open = "opened",
      .all_issues = "/issues?scope=all&state=all&per_page=100&labels=",
      .comments = "/notes",
      .closings = "/resource_state_events?per_page=100",
      .closing = "state",
      .closing_commit = "source_commit",
      .change = "PUT",
      .labels = issue_label,
      .closed = {{"state_event", "close"}},
      .reopened = {{"state_event", "reopen"}},
  };
  return dialect;
}

class RestForge : public Forge {
 public:
  RestForge(const Dialect& dialect, const std::string& base, HttpHeaders headers,
            const ForgeOptions& options)
      : dialect_(dialect), rest_(dialect.service, base, std::move(headers), options) {}

  ForgeLimits limits() const override { return dialect_.limits; }

  Result<std::vector<ForgeIssue>> issues() override {
    const auto all = rest_.get_all(dialect_.all_issues + url_encoded(issue_label));
    if (!all) return all.error();
    std::vector<ForgeIssue> issues;
    for (const Json& one : *all)
      if (!one.contains("pull_request")) issues.push_back(issue_of(one));
    return issues;
  }

  Result<std::optional<ForgeIssue>> find(const std::string& url) override {
    const auto number = issue_number(url);
    if (!number) return std::optional<ForgeIssue>();
    const auto found = rest_.get(path_of(*number));
    if (!found) return found.error();
    if (!*found || text_at(**found, dialect_.url) != url) return std::optional<ForgeIssue>();
    return std::optional(issue_of(**found));
  }

  Result<std::string> closing_commit(int64_t number) override {
    const auto steps = rest_.get_all(path_of(number) + dialect_.closings);
    if (!steps) return steps.error();
    std::string commit;
    for (const Json& step : *steps)
      if (text_at(step, dialect_.closing) == "closed")
        commit = text_at(step, dialect_.closing_commit);
    return commit;
  }

  Result<ForgeIssue> open(const std::string& title, const std::string& body) override {
    const auto made = rest_.change(
        "POST", "/issues", {{"title", title}, {dialect_.body, body}, {"labels", dialect_.labels}});
    if (!made) return made.error();
    return issue_of(*made);
  }

  Result<void> rewrite(int64_t number, const std::string& body) override {
    return change(dialect_.change, path_of(number), {{dialect_.body, body}});
  }

  Result<void> comment(int64_t number, const std::string& text) override {
    return change("POST", path_of(number) + dialect_.comments, {{"body", text}});
  }

  Result<void> close(int64_t number) override {
    return change(dialect_.change, path_of(number), dialect_.closed);
  }

  Result<void> reopen(int64_t number) override {
    return change(dialect_.change, path_of(number), dialect_.reopened);
  }

 private:
  static std::string path_of(int64_t number) { return "/issues/" + std::to_string(number); }

  ForgeIssue issue_of(const Json& json) const {
    ForgeIssue issue;
    if (json.contains(dialect_.number) && json[dialect_.number].is_number_integer())
      issue.number = json[dialect_.number];
    issue.url = text_at(json, dialect_.url);
    issue.title = text_at(json, "title");
    issue.body = text_at(json, dialect_.body);
    issue.is_open = text_at(json, "state") == dialect_.open;
    issue.closed = forge_time(text_at(json, "closed_at"));
    return issue;
  }

  Result<void> change(const char* method, const std::string& path, const Json& what) {
    const auto done = rest_.change(method, path, what);
    if (!done) return done.error();
    return {};
  }

  const Dialect& dialect_;
  ForgeRest rest_;
};

bool is_name(const std::string& text) {
  return !text.empty() && text != "." && text != ".." && url_encoded(text) == text;
}

void choose_api(ForgeOptions& options, const char* public_service) {
  if (options.api.empty()) options.api = public_service;
  while (options.api.ends_with('/')) options.api.pop_back();
}

}  // namespace

Result<std::unique_ptr<Forge>> open_github(ForgeOptions options) {
  const auto parts = split(options.repository, '/');
  if (parts.size() != 2 || !is_name(parts[0]) || !is_name(parts[1]))
    return usage_error("that is not a repository of GitHub", printable(options.repository),
                       "write OWNER/REPOSITORY");
  choose_api(options, "https://api.github.com");
  HttpHeaders headers{{"Accept", "application/vnd.github+json"},
                      {"X-GitHub-Api-Version", "2022-11-28"}};
  if (!options.token.empty()) headers.emplace_back("Authorization", "Bearer " + options.token);
  const std::string base = options.api + "/repos/" + options.repository;
  return std::unique_ptr<Forge>(new RestForge(github_dialect(), base, headers, options));
}

Result<std::unique_ptr<Forge>> open_gitlab(ForgeOptions options) {
  const auto parts = split(options.repository, '/');
  if (parts.size() < 2 ||
      std::ranges::any_of(parts, [](const std::string& part) { return part.empty(); }))
    return usage_error("that is not a project of GitLab", printable(options.repository),
                       "write GROUP/PROJECT");
  choose_api(options, "https://gitlab.com/api/v4");
  HttpHeaders headers;
  if (!options.token.empty())
    headers.emplace_back(options.is_job_token ? "JOB-TOKEN" : "PRIVATE-TOKEN", options.token);
  const std::string base = options.api + "/projects/" + url_encoded(options.repository);
  return std::unique_ptr<Forge>(new RestForge(gitlab_dialect(), base, headers, options));
}

}  // namespace unflake
