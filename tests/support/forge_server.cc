#include "support/forge_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "util/json.h"

namespace unflake {
namespace {

using Json = nlohmann::json;
using StoredIssue = ForgeServer::StoredIssue;

constexpr const char* now = "2026-03-01T12:00:00Z";

struct Refusal {
  std::string method;
  int status = 0;
  std::map<std::string, std::string> headers;
  int times = 0;
};

size_t characters(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void answer(httplib::Response& response, int status, const Json& body) {
  response.status = status;
  response.set_content(json_text(body), "application/json");
}

}  // namespace

struct ForgeServer::State {
  mutable std::mutex mutex;
  httplib::Server server;
  std::thread thread;
  int port = 0;
  std::vector<StoredIssue> issues;
  std::vector<Comment> comments;
  std::vector<Refusal> refusals;
  int changes = 0;
  bool race = false;

  std::string origin() const { return "http://127.0.0.1:" + std::to_string(port); }

  StoredIssue* find(const std::string& number) {
    for (StoredIssue& issue : issues)
      if (std::to_string(issue.number) == number) return &issue;
    return nullptr;
  }

  StoredIssue& add(StoredIssue issue) {
    issue.number = static_cast<int64_t>(issues.size()) + 1;
    issues.push_back(std::move(issue));
    return issues.back();
  }

  Json github_json(const StoredIssue& issue) const {
    Json json{
        {"number", issue.number},
        {"html_url", fmt::format("https://github.com/{}/issues/{}", repository, issue.number)},
        {"title", issue.title},
        {"body", issue.body.empty() ? Json() : Json(issue.body)},
        {"state", issue.is_open ? "open" : "closed"},
        {"closed_at", issue.closed_at.empty() ? Json() : Json(issue.closed_at)}};
    if (issue.is_pull_request) json["pull_request"] = {{"url", "somewhere"}};
    return json;
  }

  Json gitlab_json(const StoredIssue& issue) const {
    return {{"iid", issue.number},
            {"id", issue.number + 1000},
            {"web_url", fmt::format("https://gitlab.com/{}/-/issues/{}", repository, issue.number)},
            {"title", issue.title},
            {"description", issue.body.empty() ? Json() : Json(issue.body)},
            {"state", issue.is_open ? "opened" : "closed"},
            {"closed_at", issue.closed_at.empty() ? Json() : Json(issue.closed_at)}};
  }

  template <class ToJson>
  void list(const httplib::Request& request, httplib::Response& response, ToJson to_json) {
    const std::string label = request.get_param_value("labels");
    Json all = Json::array();
    for (const StoredIssue& issue : issues)
      if (label.empty() || std::ranges::count(issue.labels, label) > 0)
        all.push_back(to_json(issue));
    page(request, response, all);
  }

  void page(const httplib::Request& request, httplib::Response& response, const Json& all) {
    const auto number = [&](const char* name, size_t otherwise) {
      return request.has_param(name) ? std::stoul(request.get_param_value(name)) : otherwise;
    };
    const size_t size = std::min<size_t>(number("per_page", 30), 100), page = number("page", 1);
    Json members = Json::array();
    for (size_t i = (page - 1) * size; i < std::min(all.size(), page * size); ++i)
      members.push_back(all[i]);
    if (all.size() > page * size) {
      std::string query;
      for (const auto& [name, value] : request.params)
        if (name != "page") query += name + "=" + value + "&";
      response.set_header(
          "Link", fmt::format("<{}{}?{}page={}>; rel=\"next\", <{}/last>; rel=\"last\"", origin(),
                              request.path, query, page + 1, origin()));
    }
    answer(response, 200, members);
  }

  // As the next one that asks for it finds it.
  bool is_refused(const httplib::Request& request, httplib::Response& response) {
    for (Refusal& refusal : refusals) {
      if (refusal.method != request.method || refusal.times == 0) continue;
      --refusal.times;
      for (const auto& [name, value] : refusal.headers)
        response.set_header(name.c_str(), value.c_str());
      answer(response, refusal.status, {{"message", "as the test wants it"}});
      return true;
    }
    return false;
  }

  void open(StoredIssue issue) {
    ++changes;
    issue.labels = {"flaky-test"};
    if (race) add(issue);
    race = false;
    add(std::move(issue));
  }

  void github(const httplib::Request& request, httplib::Response& response);
  void gitlab(const httplib::Request& request, httplib::Response& response);
  void change_github(const httplib::Request& request, httplib::Response& response,
                     StoredIssue& issue);
  void change_gitlab(const httplib::Request& request, httplib::Response& response,
                     StoredIssue& issue);
  bool github_accepts(const Json& body, httplib::Response& response);
  bool gitlab_accepts(const Json& body, httplib::Response& response);
};

bool ForgeServer::State::github_accepts(const Json& body, httplib::Response& response) {
  const char* wrong = nullptr;
  if (body.contains("title") && characters(body["title"]) > 256) wrong = "title";
  if (body.contains("body") && characters(body["body"]) > 65536) wrong = "body";
  if (!wrong) return true;
  answer(response, 422,
         {{"message", "Validation Failed"},
          {"errors",
           {{{"resource", "Issue"},
             {"code", "custom"},
             {"field", wrong},
             {"message", fmt::format("{} is too long", wrong)}}}}});
  return false;
}

void ForgeServer::State::github(const httplib::Request& request, httplib::Response& response) {
  const std::lock_guard lock(mutex);
  if (is_refused(request, response)) return;
  if (!request.has_header("User-Agent"))
    return answer(response, 403, {{"message", "no User-Agent"}});
  const std::string given = request.get_header_value("Authorization");
  if (!given.empty() && given != std::string("Bearer ") + token)
    return answer(response, 401, {{"message", "Bad credentials"}});
  if (request.matches[1] != repository) return answer(response, 404, {{"message", "Not Found"}});
  if (request.method != "GET" && given.empty())
    return answer(response, 401, {{"message", "Requires authentication"}});
  const std::string number = request.matches[2], what = request.matches[3];
  StoredIssue* issue = find(number);
  if (!number.empty() && !issue) return answer(response, 404, {{"message", "Not Found"}});
  const auto to_json = [this](const StoredIssue& one) { return github_json(one); };
  if (request.method != "GET" && issue) return change_github(request, response, *issue);
  if (request.method == "GET" && !issue) return list(request, response, to_json);
  if (what == "/events") {
    Json events = Json::array({{{"event", "labeled"}}});
    if (!issue->is_open)
      events.push_back(
          {{"event", "closed"},
           {"commit_id", issue->closing_commit.empty() ? Json() : Json(issue->closing_commit)}});
    return page(request, response, events);
  }
  if (request.method == "GET") return answer(response, 200, github_json(*issue));
  const Json body = parse_json_or_throw(request.body);
  if (!github_accepts(body, response)) return;
  open({0, body.at("title"), body.at("body"), true, false, {}, "", ""});
  answer(response, 201, github_json(issues.back()));
}

void ForgeServer::State::change_github(const httplib::Request& request, httplib::Response& response,
                                       StoredIssue& issue) {
  const Json body = parse_json_or_throw(request.body);
  if (!github_accepts(body, response)) return;
  ++changes;
  if (request.matches[3] == "/comments") {
    comments.push_back({issue.number, body.at("body")});
    return answer(response, 201, {{"id", comments.size()}});
  }
  if (body.contains("body")) issue.body = body["body"];
  if (body.contains("state")) {
    issue.is_open = body["state"] == "open";
    issue.closed_at = issue.is_open ? "" : now;
  }
  answer(response, 200, github_json(issue));
}

bool ForgeServer::State::gitlab_accepts(const Json& body, httplib::Response& response) {
  if (body.contains("title") && characters(body["title"]) > 255) {
    answer(response, 400, {{"message", {{"title", {"is too long (maximum is 255 characters)"}}}}});
    return false;
  }
  return true;
}

void ForgeServer::State::gitlab(const httplib::Request& request, httplib::Response& response) {
  const std::lock_guard lock(mutex);
  if (is_refused(request, response)) return;
  const std::string given = request.get_header_value("PRIVATE-TOKEN");
  if (!given.empty() && given != token)
    return answer(response, 401, {{"message", "401 Unauthorized"}});
  if (request.matches[1] != repository)
    return answer(response, 404, {{"message", "404 Project Not Found"}});
  if (request.method != "GET" && given.empty())
    return answer(response, 401, {{"message", "401 Unauthorized"}});
  const std::string number = request.matches[2];
  StoredIssue* issue = find(number);
  if (!number.empty() && !issue) return answer(response, 404, {{"message", "404 Not found"}});
  if (request.method != "GET" && issue) return change_gitlab(request, response, *issue);
  if (request.method == "GET" && !issue)
    return list(request, response, [this](const StoredIssue& one) { return gitlab_json(one); });
  if (request.matches[3] == "/resource_state_events") {
    Json events = Json::array();
    if (!issue->is_open)
      events.push_back({{"state", "closed"},
                        {"source_commit",
                         issue->closing_commit.empty() ? Json() : Json(issue->closing_commit)}});
    return page(request, response, events);
  }
  if (request.method == "GET") return answer(response, 200, gitlab_json(*issue));
  const Json body = parse_json_or_throw(request.body);
  if (!gitlab_accepts(body, response)) return;
  open({0, body.at("title"), body.at("description"), true, false, {}, "", ""});
  answer(response, 201, gitlab_json(issues.back()));
}

void ForgeServer::State::change_gitlab(const httplib::Request& request, httplib::Response& response,
                                       StoredIssue& issue) {
  const Json body = parse_json_or_throw(request.body);
  if (!gitlab_accepts(body, response)) return;
  ++changes;
  if (request.matches[3] == "/notes") {
    comments.push_back({issue.number, body.at("body")});
    return answer(response, 201, {{"id", comments.size()}});
  }
  if (body.contains("description")) issue.body = body["description"];
  if (body.contains("state_event")) {
    issue.is_open = body["state_event"] == "reopen";
    issue.closed_at = issue.is_open ? "" : now;
  }
  answer(response, 200, gitlab_json(issue));
}

ForgeServer::ForgeServer() : state_(std::make_unique<State>()) {
  State& state = *state_;
  const auto github = [&state](const auto& request, auto& response) {
    state.github(request, response);
  };
  const auto gitlab = [&state](const auto& request, auto& response) {
    state.gitlab(request, response);
  };
  const char* github_path = R"(/repos/(.+?)/issues(?:/(\d+)(/comments|/events)?)?)";
  const char* gitlab_path =
      R"(/api/v4/projects/(.+?)/issues(?:/(\d+)(/notes|/resource_state_events)?)?)";
  state.server.Get(github_path, github).Post(github_path, github).Patch(github_path, github);
  state.server.Get(gitlab_path, gitlab).Post(gitlab_path, gitlab).Put(gitlab_path, gitlab);
  state.port = state.server.bind_to_any_port("127.0.0.1");
  state.thread = std::thread([&state] { state.server.listen_after_bind(); });
  while (!state.server.is_running()) std::this_thread::yield();
}

ForgeServer::~ForgeServer() {
  go_away();
}

void ForgeServer::go_away() {
  state_->server.stop();
  if (state_->thread.joinable()) state_->thread.join();
}

std::string ForgeServer::github_api() const {
  return state_->origin();
}
std::string ForgeServer::gitlab_api() const {
  return state_->origin() + "/api/v4";
}

std::vector<StoredIssue> ForgeServer::issues() const {
  const std::lock_guard lock(state_->mutex);
  return state_->issues;
}

std::vector<ForgeServer::Comment> ForgeServer::comments() const {
  const std::lock_guard lock(state_->mutex);
  return state_->comments;
}

int ForgeServer::changes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->changes;
}

int64_t ForgeServer::add(const StoredIssue& issue) {
  const std::lock_guard lock(state_->mutex);
  return state_->add(issue).number;
}

void ForgeServer::change(int64_t number, const std::string& body) {
  const std::lock_guard lock(state_->mutex);
  state_->find(std::to_string(number))->body = body;
}

void ForgeServer::close(int64_t number, const std::string& closed_at, const std::string& commit) {
  const std::lock_guard lock(state_->mutex);
  StoredIssue& issue = *state_->find(std::to_string(number));
  issue.is_open = false;
  issue.closed_at = closed_at;
  issue.closing_commit = commit;
}

void ForgeServer::fail(const std::string& method, int status,
                       std::map<std::string, std::string> headers, int times) {
  const std::lock_guard lock(state_->mutex);
  state_->refusals.push_back({method, status, std::move(headers), times});
}

void ForgeServer::race_with_next_open() {
  const std::lock_guard lock(state_->mutex);
  state_->race = true;
}

}  // namespace unflake
