#include <algorithm>

#include "util/json.h"
#include "util/text.h"
#include "web/forge.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

ForgeIssue gitlab_issue(const Json& json) {
  ForgeIssue issue;
  if (json.contains("iid") && json["iid"].is_number_integer()) issue.number = json["iid"];
  issue.url = text_at(json, "web_url");
  issue.title = text_at(json, "title");
  issue.body = text_at(json, "description");
  issue.is_open = text_at(json, "state") == "opened";
  issue.closed = forge_time(text_at(json, "closed_at"));
  return issue;
}

HttpHeaders gitlab_headers(const ForgeOptions& options) {
  if (options.token.empty()) return {};
  return {{options.is_job_token ? "JOB-TOKEN" : "PRIVATE-TOKEN", options.token}};
}

class Gitlab : public Forge {
 public:
  explicit Gitlab(const ForgeOptions& options)
      : rest_("GitLab", options.api + "/projects/" + url_encoded(options.repository),
              gitlab_headers(options), options) {}

  ForgeLimits limits() const override { return {255, 1'048'576}; }

  Result<std::vector<ForgeIssue>> issues() override {
    const auto all = rest_.get_all("/issues?scope=all&state=all&per_page=100&labels=" +
                                   url_encoded(issue_label));
    if (!all) return all.error();
    std::vector<ForgeIssue> issues;
    for (const Json& one : *all) issues.push_back(gitlab_issue(one));
    return issues;
  }

  Result<std::optional<ForgeIssue>> find(const std::string& url) override {
    const auto number = issue_number(url);
    if (!number) return std::optional<ForgeIssue>();
    const auto found = rest_.get("/issues/" + std::to_string(*number));
    if (!found) return found.error();
    if (!*found || text_at(**found, "web_url") != url) return std::optional<ForgeIssue>();
    return std::optional(gitlab_issue(**found));
  }

  // Servers that are too old to tell leave the commit out.
  Result<std::string> closing_commit(int64_t number) override {
    const auto events =
        rest_.get_all("/issues/" + std::to_string(number) + "/resource_state_events?per_page=100");
    if (!events) return events.error();
    std::string commit;
    for (const Json& event : *events)
      if (text_at(event, "state") == "closed") commit = text_at(event, "source_commit");
    return commit;
  }

  Result<ForgeIssue> open(const std::string& title, const std::string& body) override {
    const auto made = rest_.change(
        "POST", "/issues", {{"title", title}, {"description", body}, {"labels", issue_label}});
    if (!made) return made.error();
    return gitlab_issue(*made);
  }

  Result<void> rewrite(int64_t number, const std::string& body) override {
    return put(number, {{"description", body}});
  }

  Result<void> comment(int64_t number, const std::string& text) override {
    const auto made =
        rest_.change("POST", "/issues/" + std::to_string(number) + "/notes", {{"body", text}});
    if (!made) return made.error();
    return {};
  }

  Result<void> close(int64_t number) override { return put(number, {{"state_event", "close"}}); }
  Result<void> reopen(int64_t number) override { return put(number, {{"state_event", "reopen"}}); }

 private:
  Result<void> put(int64_t number, const Json& what) {
    const auto done = rest_.change("PUT", "/issues/" + std::to_string(number), what);
    if (!done) return done.error();
    return {};
  }

  ForgeRest rest_;
};

}  // namespace

Result<std::unique_ptr<Forge>> open_gitlab(ForgeOptions options) {
  const auto parts = split(options.repository, '/');
  if (parts.size() < 2 ||
      std::ranges::any_of(parts, [](const std::string& part) { return part.empty(); }))
    return usage_error("that is not a project of GitLab", printable(options.repository),
                       "write GROUP/PROJECT");
  if (options.api.empty()) options.api = "https://gitlab.com/api/v4";
  while (options.api.ends_with('/')) options.api.pop_back();
  return std::unique_ptr<Forge>(new Gitlab(options));
}

}  // namespace unflake
