#include "web/forge.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

constexpr int most_pages = 100;
constexpr int most_tries = 4;
constexpr Duration between_changes = std::chrono::seconds(1);  // what both services ask for

bool is_busy(int status) {
  return status == 500 || status == 502 || status == 503 || status == 504;
}

std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// What the server says went wrong: GitHub's "message" and "errors", GitLab's "message" or "error".
std::string explanation_in(const std::string& body) {
  const Json answer = parse_json(body);
  if (!answer.is_object()) return "";
  std::string text;
  for (const char* name : {"message", "error", "error_description", "errors"}) {
    const auto found = answer.find(name);
    if (found == answer.end()) continue;
    if (!text.empty()) text += ": ";
    text += found->is_string() ? found->get<std::string>()
                               : found->dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return printable(shorten(text, 300));
}

}  // namespace

ForgeRest::ForgeRest(std::string service, std::string base, HttpHeaders headers,
                     ForgeOptions options)
    : service_(std::move(service)),
      base_(std::move(base)),
      headers_(std::move(headers)),
      options_(std::move(options)) {
  headers_.emplace_back("User-Agent", "unflake");
}

Result<std::optional<Json>> ForgeRest::get(const std::string& path) {
  const auto response = exchange("GET", base_ + path, "");
  if (!response) return response.error();
  if (response->status == 404 || response->status == 410) return std::optional<Json>();
  auto json = json_of(*response);
  if (!json) return json.error();
  return std::optional(std::move(*json));
}

Result<Json> ForgeRest::get_all(const std::string& path) {
  Json all = Json::array();
  std::string url = base_ + path;
  for (int page = 0; page < most_pages && !url.empty(); ++page) {
    const auto response = exchange("GET", url, "");
    if (!response) return response.error();
    auto members = json_of(*response);
    if (!members) return members.error();
    if (!members->is_array())
      return internal_error(service_ + " does not answer with a list", base_);
    for (Json& member : *members)
      if (member.is_object()) all.push_back(std::move(member));
    url = next_page(*response);
  }
  return all;
}

Result<Json> ForgeRest::change(const char* method, const std::string& path, const Json& body) {
  if (has_changed_ && options_.wait) options_.wait(between_changes);
  has_changed_ = true;
  const auto response = exchange(method, base_ + path, json_text(body));
  if (!response) return response.error();
  return json_of(*response);
}

// A query may be repeated. A change may have happened although nobody answered, so that is
// left to the next call of the command, which looks before it acts.
Result<HttpResponse> ForgeRest::exchange(const char* method, const std::string& url,
                                         const std::string& body) {
  const bool asks = std::string_view(method) == "GET";
  HttpRequest request;
  request.method = method;
  request.url = url;
  request.headers = headers_;
  request.body = body;
  for (int tried = 1;; ++tried) {
    auto response = send(request);
    std::optional<Duration> pause;
    if (response) pause = asked_to_wait(*response);
    if (!pause && asks && (!response || is_busy(response->status)))
      pause = std::chrono::seconds(tried * tried);
    if (!pause || tried == most_tries || *pause > patience_ || !options_.wait) return response;
    patience_ -= *pause;
    options_.wait(*pause);
  }
}

// 429, or GitHub's 403 that means the same.
std::optional<Duration> ForgeRest::asked_to_wait(const HttpResponse& response) const {
  const std::string_view seconds = response.header("Retry-After");
  const bool exhausted = response.header("X-RateLimit-Remaining") == "0";
  if (response.status != 429 && !(response.status == 403 && (exhausted || !seconds.empty())))
    return std::nullopt;
  if (const auto given = number_in(seconds))
    return std::chrono::seconds(std::min<int64_t>(*given, 1'000'000));
  for (const char* name : {"X-RateLimit-Reset", "RateLimit-Reset"})
    if (const auto at = number_in(response.header(name)))
      return std::max<Duration>(
          std::chrono::seconds(1),
          std::chrono::duration_cast<Duration>(
              TimePoint(std::chrono::seconds(std::min<int64_t>(*at, 4'000'000'000))) -
              std::chrono::system_clock::now()));
  return std::chrono::minutes(1);  // GitHub's advice for a secondary limit that says nothing
}

Result<Json> ForgeRest::json_of(const HttpResponse& response) const {
  if (response.status < 200 || response.status > 299) return error_of(response);
  Json json = parse_json(response.body);
  if (json.is_discarded())
    return internal_error(service_ + " does not answer with JSON", base_,
                          "is the address of --api the one of its REST API?");
  return json;
}

Error ForgeRest::error_of(const HttpResponse& response) const {
  const std::string said = explanation_in(response.body);
  const auto told = [&](const std::string& what) {
    return said.empty() ? what : what + ": " + said;
  };
  const auto answer = fmt::format("{} answers {}", service_, response.status);
  if (const auto pause = asked_to_wait(response))
    return internal_error(
        told(service_ + "'s rate limit is reached"), base_,
        fmt::format("call again in {}; what was done is saved", format_duration(*pause)));
  switch (response.status) {
    case 301:
    case 302:
    case 307:
    case 308:
      return usage_error(answer + ": the repository or the server has moved", base_,
                         "use its new name");
    case 401:
      return usage_error(told(answer), base_,
                         options_.token.empty()
                             ? "set a token in the environment"
                             : "the token is not valid any more, or for another server");
    case 403:
      return usage_error(told(answer), base_,
                         "the token may not do this: it needs to write issues");
    case 404:
      return usage_error(told(answer), base_,
                         "check the repository's name, and that the token may see it");
    case 410:
      return usage_error(told(answer), base_, "the repository's issues are switched off");
    default:
      return internal_error(
          told(answer), base_,
          is_busy(response.status) ? "call again later; what was done is saved" : "");
  }
}

// Only to the same place: the token goes with it.
std::string ForgeRest::next_page(const HttpResponse& response) const {
  for (const std::string& link : split(std::string(response.header("Link")), ',')) {
    if (link.find("rel=\"next\"") == std::string::npos) continue;
    const size_t from = link.find('<'), to = link.find('>');
    if (from == std::string::npos || to == std::string::npos || to < from) continue;
    const std::string url = link.substr(from + 1, to - from - 1);
    const std::string origin = base_.substr(0, base_.find('/', base_.find("://") + 3));
    if (url.starts_with(origin + "/")) return url;
  }
  return "";
}

std::optional<TimePoint> forge_time(const std::string& text) {
  int year = 0, hour = 0, minute = 0, second = 0, used = 0;
  unsigned month = 0, day = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
                  &second, &used) != 6)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  std::string zone = text.substr(static_cast<size_t>(used));
  if (zone.starts_with('.'))
    zone.erase(0, std::min(zone.find_first_not_of("0123456789", 1), zone.size()));
  char sign = '+';
  int hours_off = 0, minutes_off = 0;
  if (zone != "Z" && !zone.empty() &&
      std::sscanf(zone.c_str(), "%c%2d:%2d", &sign, &hours_off, &minutes_off) != 3)
    return std::nullopt;
  const int off = (hours_off * 60 + minutes_off) * (sign == '-' ? -1 : 1);
  return TimePoint(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute - off) + std::chrono::seconds(second);
}

std::string text_at(const Json& object, const char* name) {
  if (!object.is_object()) return "";
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int64_t> issue_number(const std::string& url) {
  const size_t slash = url.rfind('/');
  if (slash == std::string::npos || !std::string_view(url).substr(0, slash).ends_with("/issues"))
    return std::nullopt;
  return number_in(std::string_view(url).substr(slash + 1));
}

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
