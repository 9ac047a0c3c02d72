#include "web/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <set>
#include <thread>

#include "ingest/ingest.h"
#include "ingest/report_reader.h"
#include "util/text.h"
#include "web/delivery.h"

namespace unflake {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t longest_line = 16 * 1024;
constexpr size_t longest_path = 200;  // of a request, that is sent back
constexpr std::chrono::seconds patience_when_stopping{10};

// A connection whose client cannot take more time or memory than the limits allow, whatever it
// sends: the library by itself reads a line of any length.
class BoundedStream : public httplib::Stream {
 public:
  BoundedStream(int socket, const ServerLimits& limits, const std::atomic<bool>& stopping)
      : socket_(socket),
        limits_(limits),
        stopping_(stopping),
        deadline_(Clock::now() + limits.heading) {}

  bool is_readable() const override { return at_ < size_ || wait_for(POLLIN); }
  bool is_writable() const override { return wait_for(POLLOUT); }
  int socket() const override { return socket_; }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}

  ssize_t read(char* into, size_t size) override {
    if (at_ == size_ && !refill()) return failed_ ? -1 : 0;
    const size_t count = std::min(size, size_ - at_);
    std::copy_n(buffer_ + at_, count, into);
    at_ += count;
    return is_within_limits({into, count}) ? static_cast<ssize_t>(count) : -1;
  }

  ssize_t write(const char* bytes, size_t size) override {
    for (;;) {
      if (!wait_for(POLLOUT)) return -1;
      const ssize_t count = ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count >= 0 || (errno != EINTR && errno != EAGAIN)) return count;
    }
  }

 private:
  bool refill() {
    at_ = size_ = 0;
    for (;;) {
      failed_ = !wait_for(POLLIN);
      if (failed_) return false;
      const ssize_t count = ::recv(socket_, buffer_, sizeof buffer_, MSG_DONTWAIT);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      failed_ = count < 0;
      size_ = count > 0 ? static_cast<size_t>(count) : 0;
      return count > 0;
    }
  }

  // In steps, so that a server that is told to stop does not wait for a slow client.
  bool wait_for(short events) const {
    const auto begun = Clock::now();
    for (;;) {
      const auto now = Clock::now();
      const bool is_over = now >= deadline_ || now - begun >= limits_.silence ||
                           (stopping_ && now - begun >= patience_when_stopping);
      if (is_over) return false;
      pollfd waiting{socket_, events, 0};
      const int ready = ::poll(&waiting, 1, 200);
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
  }

  // Lines are read byte by byte, contents in larger pieces.
  bool is_within_limits(std::string_view bytes) {
    taken_ += bytes.size();
    line_bytes_ = bytes.size() == 1 ? line_bytes_ + 1 : 0;
    const bool ends_line = bytes == "\n";
    const bool is_blank = ends_line && line_bytes_ <= 2;
    const bool is_short = line_bytes_ <= longest_line;
    if (ends_line) line_bytes_ = 0;
    if (in_heading_ && is_blank && taken_ > 2) {
      in_heading_ = false;
      deadline_ = Clock::now() + limits_.whole;
    }
    const uint64_t most = in_heading_ ? limits_.most_heading_bytes
                                      : limits_.most_heading_bytes + limits_.most_body_bytes;
    return is_short && taken_ <= most;
  }

  const int socket_;
  const ServerLimits& limits_;
  const std::atomic<bool>& stopping_;
  Clock::time_point deadline_;
  char buffer_[16 * 1024];
  size_t at_ = 0, size_ = 0;
  uint64_t taken_ = 0;     // by the library
  size_t line_bytes_ = 0;  // of the line that is being read
  bool in_heading_ = true;
  bool failed_ = false;
};

// The library's server, with its connections wrapped in BoundedStream.
class BoundedServer : public httplib::Server {
 public:
  explicit BoundedServer(const ServerLimits& limits) : limits_(limits) {}

  ~BoundedServer() override { close_listener(); }

  std::atomic<bool> stopping = false;

  // The library does so only when it has served.
  void close_listener() {
    const int listener = svr_sock_.exchange(-1);
    if (listener >= 0) ::close(listener);
  }

 private:
  bool process_and_close_socket(int socket) override {
    BoundedStream stream(socket, limits_, stopping);
    bool closed = false;
    const bool served = process_request(stream, true, closed, nullptr);
    // What the client still sends is read, or else the answer would be lost with the connection.
    ::shutdown(socket, SHUT_WR);
    char rest[4096];
    for (int i = 0; i < 256 && stream.is_readable(); ++i)
      if (::recv(socket, rest, sizeof rest, MSG_DONTWAIT) <= 0) break;
    ::close(socket);
    return served;
  }

  const ServerLimits& limits_;
};

void only_reuse_address(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

bool has_body(const httplib::Request& request) {
  return request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
}

ServedRequest to_served(const httplib::Request& request) {
  ServedRequest served{request.method, request.path, {}, {}};
  for (const auto& [name, value] : request.params) served.query[name] = value;
  for (const auto& [name, value] : request.headers) served.headers.emplace_back(name, value);
  return served;
}

void answer(const HttpResponse& from, httplib::Response& to) {
  to.status = from.status;
  std::string type = "application/json";
  for (const auto& [name, value] : from.headers)
    if (::strcasecmp(name.c_str(), "Content-Type") == 0)
      type = value;
    else
      to.set_header(name, value);
  to.set_content(from.body, type);
}

Error refused_by_library(int status) {
  return status == 413 ? usage_error("the body is too large", "", "send less at a time")
                       : usage_error("the request is not understood", "", "send it as HTTP/1.1");
}

struct HostAndPort {
  std::string host;
  int port = 0;
};

Result<HostAndPort> parse_address(const std::string& address) {
  const size_t colon = address.rfind(':');
  const auto bad =
      usage_error(fmt::format("'{}' is not an address to listen on", printable(address)), "",
                  "write it as 127.0.0.1:8080; port 0 means any");
  if (colon == std::string::npos || colon == 0) return bad;
  HostAndPort parts{address.substr(0, colon), 0};
  const char* end = address.data() + address.size();
  const auto [stop, failed] = std::from_chars(address.data() + colon + 1, end, parts.port);
  if (failed != std::errc() || stop != end || parts.port < 0 || parts.port > 65535) return bad;
  if (parts.host.starts_with('[') && parts.host.ends_with(']'))
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  return parts;
}

class HttplibServer : public HttpServer {
 public:
  explicit HttplibServer(const ServerLimits& limits) : limits_(limits), server_(limits_) {
    server_.set_payload_max_length(limits_.most_body_bytes);
    server_.set_socket_options(only_reuse_address);
    server_.set_tcp_nodelay(true);
    server_.new_task_queue = [threads = limits_.threads] {
      return new httplib::ThreadPool(threads);
    };
    server_.set_pre_routing_handler(
        [this](const auto& request, auto& response) { return check(request, response); });
    server_.set_exception_handler([](const auto&, auto& response, std::exception_ptr) {
      answer({500, {}, to_json(internal_error("the server failed"))}, response);
    });
    // What the library refuses by itself: a request that is not one, a body that is too large.
    server_.set_error_handler([](const auto&, auto& response) {
      if (!response.body.empty()) return;
      answer({response.status, {}, to_json(refused_by_library(response.status))}, response);
    });
  }

  Result<void> bind(const std::string& address) {
    const auto parts = parse_address(address);
    if (!parts) return parts.error();
    port_ = parts->port;
    if (port_ == 0)
      port_ = server_.bind_to_any_port(parts->host);
    else if (!server_.bind_to_port(parts->host, port_))
      port_ = -1;
    if (port_ > 0) return {};
    return usage_error(fmt::format("cannot listen on {}", printable(address)), "",
                       "is another server there? choose another port, or 0 for any");
  }

  void handle(const std::string& method, const std::string& path, ServeRequest serve) override {
    methods_[path].insert(method);
    const auto plain = [serve](const httplib::Request& request, httplib::Response& response) {
      answer(serve(to_served(request), [](const auto&) { return true; }), response);
    };
    const auto with_body = [serve](const httplib::Request& request, httplib::Response& response,
                                   const httplib::ContentReader& content) {
      const TakeBody body = [&](const std::function<bool(std::string_view)>& take) {
        return content([&](const char* bytes, size_t size) { return take({bytes, size}); });
      };
      answer(serve(to_served(request), body), response);
    };
    if (method == "GET") server_.Get(path, plain);
    if (method == "POST") server_.Post(path, with_body);
    if (method == "PATCH") server_.Patch(path, with_body);
    if (method == "PUT") server_.Put(path, with_body);
  }

  int port() const override { return port_; }

  Result<void> run() override {
    is_started_ = true;
    const bool served = server_.stopping || server_.listen_after_bind();
    is_over_ = true;
    if (served || server_.stopping) return {};
    return internal_error("the server ended by itself");
  }

  void stop() override {
    server_.stopping = true;
    while (is_started_ && !is_over_ && !server_.is_running())  // it is just about to
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    server_.stop();
  }

 private:
  using Handled = httplib::Server::HandlerResponse;

  Handled check(const httplib::Request& request, httplib::Response& response) const {
    const auto refuse = [&](int status, const char* what, const std::string& next) {
      answer({status, {}, to_json(usage_error(what, shorten(request.path, longest_path), next))},
             response);
      return Handled::Handled;
    };
    const auto known = methods_.find(request.path);
    if (known == methods_.end())
      return refuse(404, "there is nothing at this address", "check the address");
    const std::string method = request.method == "HEAD" ? "GET" : request.method;
    if (!known->second.contains(method)) {
      const std::string methods = join({known->second.begin(), known->second.end()}, ", ");
      response.set_header("Allow", methods);
      return refuse(405, "this address has no such method", "use " + methods);
    }
    if (!has_body(request)) return Handled::Unhandled;
    if (request.is_multipart_form_data())
      return refuse(415, "this is a form", "send the file itself, as curl -T does, not a form");
    const bool has_end = request.has_header("Content-Length") ||
                         request.get_header_value("Transfer-Encoding") == "chunked";
    return has_end ? Handled::Unhandled
                   : refuse(411, "the length of the body is missing",
                            "send Content-Length, or the body in chunks");
  }

  const ServerLimits limits_;
  BoundedServer server_;
  std::map<std::string, std::set<std::string>> methods_;  // by path
  int port_ = 0;
  std::atomic<bool> is_started_ = false, is_over_ = false;
};

}  // namespace

std::string_view ServedRequest::header(std::string_view name) const {
  for (const auto& [known, value] : headers)
    if (known.size() == name.size() && ::strncasecmp(known.data(), name.data(), name.size()) == 0)
      return value;
  return {};
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& address,
                                                       const ServerLimits& limits) {
  auto server = std::make_unique<HttplibServer>(limits);
  if (const auto bound = server->bind(address); !bound) return bound.error();
  return std::unique_ptr<HttpServer>(std::move(server));
}

namespace {

constexpr const char* page = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>unflake</title></head>
<body><h1>unflake</h1>
<p>This server takes test reports into a history of runs: <code>unflake ingest --server URL FILE...</code>
or <code>curl -T FILE -X POST -H "Authorization: Bearer TOKEN" URL/api/v1/results</code>.</p>
</body></html>
)";

HttpResponse refusal(int status, const Error& error) {
  return {status, {}, to_json(error)};
}

bool may_write(const ResultsApi& api, const ServedRequest& request) {
  std::string_view given = request.header("Authorization");
  constexpr std::string_view scheme = "Bearer ";
  if (!given.starts_with(scheme)) return false;
  given.remove_prefix(scheme.size());
  return !api.token.empty() && is_same_secret(given, api.token);
}

HttpResponse no_token() {
  HttpResponse response = refusal(
      401, usage_error("the token is missing or wrong", "", "set UNFLAKE_TOKEN to the server's"));
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

// The whole report first: if it breaks off, nothing is recorded, and nobody holds the history
// for as long as a slow client takes.
Result<ReportFile> receive(const ResultsApi& api, const TakeBody& body, const std::string& name) {
  ReportReceiver receiver(name, api.most_report_bytes);
  if (const auto made = receiver.add(""); !made) return made.error();
  std::optional<Error> failed;
  const bool is_whole = body([&](std::string_view bytes) {
    const auto added = receiver.add(bytes);
    if (!added) failed = added.error();
    return added.has_value();
  });
  if (failed) return *failed;
  if (!is_whole) return usage_error("the report broke off", name, "send it again");
  return std::move(receiver).file();
}

HttpResponse take_report(const ResultsApi& api, const ServedRequest& request,
                         const TakeBody& body) {
  if (!may_write(api, request)) return no_token();
  Delivery delivery = delivery_from(request.query);
  delivery.settings.command_line = "POST /api/v1/results";
  delivery.settings.surroundings.unflake_version = api.version;
  const std::string& path = delivery.settings.origin.path;
  const auto file = receive(api, body, path.empty() ? "report" : path);
  if (!file) return refusal(file.error().kind == ErrorKind::usage ? 400 : 507, file.error());
  StoreAddress address = api.store;
  if (!delivery.project.empty()) address.project = delivery.project;
  delivery.settings.project = address.project;
  const auto store = open_store(address);
  if (!store) return refusal(503, store.error());
  const auto report = ingest(*file, delivery.settings, **store);
  if (!report) return refusal(503, report.error());
  const bool took_nothing = report->refused && report->counts.runs == 0;
  return took_nothing ? refusal(422, *report->refused) : HttpResponse{200, {}, to_json(*report)};
}

}  // namespace

bool is_same_secret(std::string_view a, std::string_view b) {
  ContentHash hash_a, hash_b;  // of the same length, so that not even that shows
  hash_a.add(a);
  hash_b.add(b);
  const std::string first = std::move(hash_a).hex(), second = std::move(hash_b).hex();
  return CRYPTO_memcmp(first.data(), second.data(), first.size()) == 0;
}

void serve_results(const ResultsApi& api, HttpServer& server) {
  server.handle("POST", "/api/v1/results", [api](const auto& request, const auto& body) {
    return take_report(api, request, body);
  });
  server.handle("GET", "/api/v1/results", [api](const auto& request, const auto&) {
    return may_write(api, request) ? HttpResponse{200, {}, "{\"format\":1,\"may_write\":true}"}
                                   : no_token();
  });
  server.handle("GET", "/health", [api](const auto&, const auto&) {
    return HttpResponse{
        200, {}, fmt::format("{{\"status\":\"ok\",\"version\":\"{}\"}}", api.version)};
  });
  server.handle("GET", "/", [](const auto&, const auto&) {
    return HttpResponse{200, {{"Content-Type", "text/html; charset=utf-8"}}, page};
  });
}

}  // namespace unflake
