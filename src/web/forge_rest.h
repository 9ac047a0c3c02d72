#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "web/forge.h"
#include "web/http_client.h"

namespace unflake {

// Requests as GitHub and GitLab want them: with a token, one page after the other, slow enough,
// and tried again when the server asks for patience.
class ForgeRest {
 public:
  // `base` is the address that all paths are behind.
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

// Of an address like https://host/owner/name/issues/7; none when it does not end so.
std::optional<int64_t> issue_number(const std::string& url);

}  // namespace unflake
