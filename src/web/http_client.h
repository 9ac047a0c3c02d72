#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/result.h"
#include "util/time.h"

namespace unflake {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The next piece of a body whose length need not be known; an empty one ends it. An error breaks
// the connection, so that the other side cannot take the part for the whole.
using BodySource = std::function<Result<std::string_view>()>;

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // http:// or https://, without user and password
  HttpHeaders headers = {};
  std::string body = "";
  BodySource source = nullptr;  // in place of `body`; sent in chunks, zipped
  std::string content_type = "application/json";
  Duration connecting = std::chrono::seconds(10);
  Duration silence = std::chrono::seconds(60);  // longest wait for the next byte
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;

  // The first of that name, whatever its case; empty: there is none.
  std::string_view header(std::string_view name) const;
};

inline constexpr size_t longest_response = 16 << 20;

// Every answer of a server is a response, whatever its status; an error means that there was none.
// Certificates are verified against the system's. Redirections are not followed, so that a token
// goes nowhere else.
Result<HttpResponse> send(const HttpRequest& request);

// For a part of a path or of a query.
std::string url_encoded(std::string_view text);

}  // namespace unflake
