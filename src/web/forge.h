#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/values.h"
#include "util/result.h"
#include "web/http_client.h"

namespace unflake {

struct ForgeIssue {
  int64_t number = 0;
  std::string url, title, body;
  bool is_open = true;
  std::optional<TimePoint> closed;
};

struct ForgeLimits {
  size_t title = 0, body = 0;  // in characters
};

inline constexpr const char* issue_label = "flaky-test";

// Where a project's issues are: GitHub, GitLab, or your own server with the same API.
class Forge {
 public:
  virtual ~Forge() = default;

  virtual ForgeLimits limits() const = 0;

  // All that have the label, open and closed.
  virtual Result<std::vector<ForgeIssue>> issues() = 0;
  // None: it is gone, or the address is of another place.
  virtual Result<std::optional<ForgeIssue>> find(const std::string& url) = 0;
  // Of the commit that closed the issue; empty: a person did, or it is not known.
  virtual Result<std::string> closing_commit(int64_t number) = 0;

  virtual Result<ForgeIssue> open(const std::string& title, const std::string& body) = 0;
  virtual Result<void> rewrite(int64_t number, const std::string& body) = 0;
  virtual Result<void> comment(int64_t number, const std::string& text) = 0;
  virtual Result<void> close(int64_t number) = 0;
  virtual Result<void> reopen(int64_t number) = 0;
};

struct ForgeOptions {
  std::string repository;              // owner/name, or group/subgroup/project
  std::string api;                     // empty: the public service
  std::string token;                   // empty: reads what everybody may read
  bool is_job_token = false;           // GitLab's own for one job
  std::function<void(Duration)> wait;  // sleeps; tests do not
};

Result<std::unique_ptr<Forge>> open_github(ForgeOptions options);
Result<std::unique_ptr<Forge>> open_gitlab(ForgeOptions options);

// Requests as GitHub and GitLab want them: with a token, one page after another, slowly enough,
// and again when the server asks for patience.
class ForgeRest {
 public:
  // `base` is the address that all paths begin with.
  ForgeRest(std::string service, std::string base, HttpHeaders headers, ForgeOptions options);

  const ForgeOptions& options() const { return options_; }

  // Nothing for 404 and 410.
  Result<std::optional<nlohmann::json>> get(const std::string& path);
  // The members of all pages.
  Result<nlohmann::json> get_all(const std::string& path);
  Result<nlohmann::json> change(const char* method, const std::string& path,
                                const nlohmann::json& body);

 private:
  Result<HttpResponse> exchange(const char* method, const std::string& url,
                                const std::string& body);
  Result<nlohmann::json> json_of(const HttpResponse& response) const;
  Error error_of(const HttpResponse& response) const;
  std::optional<Duration> asked_to_wait(const HttpResponse& response) const;
  std::string next_page(const HttpResponse& response) const;

  std::string service_, base_;
  HttpHeaders headers_;
  ForgeOptions options_;
  Duration patience_ = std::chrono::minutes(2);  // for all waits together
  bool has_changed_ = false;
};

// "2026-03-01T12:00:00Z", with a fraction or another zone too.
std::optional<TimePoint> forge_time(const std::string& text);

// A member that may be missing, null or of another type.
std::string text_at(const nlohmann::json& object, const char* name);

// Of an address like https://host/owner/name/issues/7; none if it ends differently.
std::optional<int64_t> issue_number(const std::string& url);

}  // namespace unflake
