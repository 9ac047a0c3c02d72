#include "web/http_client.h"

#include <fmt/format.h>
#include <httplib.h>
#include <strings.h>

#include <exception>
#include <optional>

#include "util/text.h"

namespace unflake {
namespace {

struct UrlParts {
  std::string server;  // https://host:port
  std::string path;
};

Result<UrlParts> parse_url(const std::string& url) {
  const size_t host = url.find("://");
  const std::string scheme = url.substr(0, host == std::string::npos ? 0 : host);
  const auto bad = [&](const std::string& what) {
    return usage_error(what, "", "write it as https://host or http://host:port");
  };
  if (scheme != "http" && scheme != "https") return bad("the server's address has no http(s)://");
  const size_t path = url.find_first_of("/?#", host + 3);
  const std::string name = url.substr(host + 3, path == std::string::npos ? path : path - host - 3);
  if (name.empty()) return bad("the server's address has no host");
  if (name.find_first_of("@ \t\r\n\\") != std::string::npos)
    return bad("the server's address holds more than a host and a port");
  UrlParts parts{scheme + "://" + name, path == std::string::npos ? "/" : url.substr(path)};
  if (parts.path[0] != '/') parts.path = "/" + parts.path;
  return parts;
}

bool is_safe(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

const char* what_happened(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "nobody answers";
    case httplib::Error::ConnectionTimeout:
      return "the server does not answer in time";
    case httplib::Error::Read:
      return "the connection broke before the answer was complete";
    case httplib::Error::Write:
      return "the connection broke while the request was sent";
    case httplib::Error::Canceled:
      return "the answer is too long";
    case httplib::Error::SSLConnection:
      return "TLS could not be agreed on";
    case httplib::Error::SSLLoadingCerts:
      return "the system's certificates cannot be loaded";
    case httplib::Error::SSLServerVerification:
      return "the server's certificate is not trusted";
    default:
      return "the request failed";
  }
}

httplib::Headers to_headers(const HttpHeaders& given) {
  httplib::Headers headers;
  for (const auto& [name, value] : given) headers.emplace(name, value);
  return headers;
}

void set_up(httplib::Client& client, const HttpRequest& request) {
  client.set_connection_timeout(request.connecting);
  client.set_read_timeout(request.silence);
  client.set_write_timeout(request.silence);
  client.set_follow_location(false);
  client.set_keep_alive(false);
  client.set_compress(static_cast<bool>(request.source));
  client.set_tcp_nodelay(true);
}

httplib::ContentProvider provider_of(const BodySource& source, std::optional<Error>& failed) {
  return [&source, &failed](size_t, size_t, httplib::DataSink& sink) {
    const auto piece = source();
    if (!piece) failed = piece.error();
    if (!piece) return false;
    if (!piece->empty()) return sink.write(piece->data(), piece->size());
    sink.done();
    return true;
  };
}

httplib::Request to_httplib(const std::string& path, const HttpRequest& request,
                            std::optional<Error>& failed) {
  httplib::Request sent;
  sent.method = request.method;
  sent.path = path;
  sent.headers = to_headers(request.headers);
  if (request.source || !request.body.empty())
    sent.set_header("Content-Type", request.content_type);
  if (!request.source) return sent.body = request.body, sent;
  sent.content_provider_ = provider_of(request.source, failed);
  sent.is_chunked_content_provider_ = true;
  sent.set_header("Transfer-Encoding", "chunked");
  sent.set_header("Content-Encoding", "gzip");
  return sent;
}

Result<HttpResponse> exchange(const UrlParts& url, const HttpRequest& request) {
  httplib::Client client(url.server);
  if (!client.is_valid()) return internal_error("TLS could not be set up", url.server);
  set_up(client, request);
  std::optional<Error> failed;
  HttpResponse response;
  httplib::Request sent = to_httplib(url.path, request, failed);
  sent.content_receiver = [&](const char* bytes, size_t size, uint64_t, uint64_t) {
    if (response.body.size() + size > longest_response) return false;
    response.body.append(bytes, size);
    return true;
  };
  const auto result = client.send(sent);
  if (failed) return *failed;
  if (!result) return internal_error(what_happened(result.error()), url.server);
  response.status = result->status;
  for (const auto& [name, value] : result->headers) response.headers.emplace_back(name, value);
  return response;
}

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
  for (const auto& [known, value] : headers)
    if (known.size() == name.size() && ::strncasecmp(known.data(), name.data(), name.size()) == 0)
      return value;
  return {};
}

Result<HttpResponse> send(const HttpRequest& request) {
  const auto url = parse_url(request.url);
  if (!url) return url.error();
  bool safe = is_safe(url->path) && is_safe(request.method) && is_safe(request.content_type);
  for (const auto& [name, value] : request.headers) safe = safe && is_safe(name) && is_safe(value);
  if (!safe) return usage_error("a header of a request must be one line", url->server);
  try {
    return exchange(*url, request);
  } catch (const std::exception& error) {
    return internal_error(fmt::format("the request failed: {}", error.what()), url->server);
  }
}

std::string url_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-' || c == '~';
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace unflake
