#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "store/store.h"
#include "util/result.h"
#include "util/time.h"
#include "web/http_client.h"

namespace unflake {

struct ServedRequest {
  std::string method, path;
  std::map<std::string, std::string> query;
  HttpHeaders headers;

  std::string_view header(std::string_view name) const;
};

// Hands the body over piece by piece, unpacked, as it arrives. False: it did not arrive whole,
// or the taker returned false.
using TakeBody = std::function<bool(const std::function<bool(std::string_view)>& take)>;

using ServeRequest = std::function<HttpResponse(const ServedRequest&, const TakeBody&)>;

struct ServerLimits {
  Duration silence = std::chrono::seconds(30);  // without a byte
  Duration heading = std::chrono::seconds(20);  // until the headers are complete
  Duration whole = std::chrono::minutes(30);    // until the body is
  size_t most_heading_bytes = 64 * 1024;
  uint64_t most_body_bytes = uint64_t{4} << 30;
  size_t threads = 32;  // requests at a time; others wait
};

// A small HTTP/1.1 server: one request per connection, each in a thread. Clients that are slow or
// never stop are cut off by the limits.
class HttpServer {
 public:
  // "127.0.0.1:8080", "[::1]:0"; port 0: any that is free.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& address,
                                                    const ServerLimits& limits);
  virtual ~HttpServer() = default;

  virtual void handle(const std::string& method, const std::string& path, ServeRequest serve) = 0;
  virtual int port() const = 0;
  // Serves until stop(), and then until the requests in flight are answered.
  virtual Result<void> run() = 0;
  virtual void stop() = 0;  // from any thread
};

struct ResultsApi {
  StoreAddress store;
  std::string token;                               // without it nobody may write
  std::string version;                             // of unflake
  uint64_t most_report_bytes = uint64_t{4} << 30;  // unpacked
};

// POST /api/v1/results takes a report, GET there says whether a token may write; GET /health and
// GET / are open to everybody.
void serve_results(const ResultsApi& api, HttpServer& server);

// Takes the same time wherever the two differ.
bool is_same_secret(std::string_view a, std::string_view b);

}  // namespace unflake
