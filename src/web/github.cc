#include "util/json.h"
#include "util/text.h"
#include "web/forge.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

ForgeIssue github_issue(const Json& json) {
  ForgeIssue issue;
  if (json.contains("number") && json["number"].is_number_integer()) issue.number = json["number"];
  issue.url = text_at(json, "html_url");
  issue.title = text_at(json, "title");
  issue.body = text_at(json, "body");
  issue.is_open = text_at(json, "state") == "open";
  issue.closed = forge_time(text_at(json, "closed_at"));
  return issue;
}

HttpHeaders github_headers(const ForgeOptions& options) {
  HttpHeaders headers{{"Accept", "application/vnd.github+json"},
                      {"X-GitHub-Api-Version", "2022-11-28"}};
  if (!options.token.empty()) headers.emplace_back("Authorization", "Bearer " + options.token);
  return headers;
}

class Github : public Forge {
 public:
  explicit Github(const ForgeOptions& options)
      : rest_("GitHub", options.api + "/repos/" + options.repository, github_headers(options),
              options) {}

  ForgeLimits limits() const override { return {256, 65536}; }

  Result<std::vector<ForgeIssue>> issues() override {
    const auto all =
        rest_.get_all("/issues?state=all&per_page=100&labels=" + url_encoded(issue_label));
    if (!all) return all.error();
    std::vector<ForgeIssue> issues;
    for (const Json& one : *all)
      if (!one.contains("pull_request")) issues.push_back(github_issue(one));
    return issues;
  }

  Result<std::optional<ForgeIssue>> find(const std::string& url) override {
    const auto number = issue_number(url);
    if (!number) return std::optional<ForgeIssue>();
    const auto found = rest_.get("/issues/" + std::to_string(*number));
    if (!found) return found.error();
    if (!*found || text_at(**found, "html_url") != url) return std::optional<ForgeIssue>();
    return std::optional(github_issue(**found));
  }

  Result<std::string> closing_commit(int64_t number) override {
    const auto events = rest_.get_all("/issues/" + std::to_string(number) + "/events?per_page=100");
    if (!events) return events.error();
    std::string commit;
    for (const Json& event : *events)
      if (text_at(event, "event") == "closed") commit = text_at(event, "commit_id");
    return commit;
  }

  Result<ForgeIssue> open(const std::string& title, const std::string& body) override {
    const auto made = rest_.change("POST", "/issues",
                                   {{"title", title}, {"body", body}, {"labels", {issue_label}}});
    if (!made) return made.error();
    return github_issue(*made);
  }

  Result<void> rewrite(int64_t number, const std::string& body) override {
    return patch(number, {{"body", body}});
  }

  Result<void> comment(int64_t number, const std::string& text) override {
    const auto made =
        rest_.change("POST", "/issues/" + std::to_string(number) + "/comments", {{"body", text}});
    if (!made) return made.error();
    return {};
  }

  Result<void> close(int64_t number) override {
    return patch(number, {{"state", "closed"}, {"state_reason", "completed"}});
  }

  Result<void> reopen(int64_t number) override {
    return patch(number, {{"state", "open"}, {"state_reason", "reopened"}});
  }

 private:
  Result<void> patch(int64_t number, const Json& what) {
    const auto done = rest_.change("PATCH", "/issues/" + std::to_string(number), what);
    if (!done) return done.error();
    return {};
  }

  ForgeRest rest_;
};

bool is_name(const std::string& text) {
  return !text.empty() && text != "." && text != ".." && url_encoded(text) == text;
}

}  // namespace

Result<std::unique_ptr<Forge>> open_github(ForgeOptions options) {
  const auto parts = split(options.repository, '/');
  if (parts.size() != 2 || !is_name(parts[0]) || !is_name(parts[1]))
    return usage_error("that is not a repository of GitHub", printable(options.repository),
                       "write OWNER/REPOSITORY");
  if (options.api.empty()) options.api = "https://api.github.com";
  while (options.api.ends_with('/')) options.api.pop_back();
  return std::unique_ptr<Forge>(new Github(options));
}

}  // namespace unflake
