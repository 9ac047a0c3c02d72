#include "web/results_client.h"

#include <fmt/format.h>

#include <vector>

#include "util/json.h"
#include "util/text.h"
#include "web/http_client.h"

namespace unflake {
namespace {

using State = Delivered::State;

constexpr size_t piece_bytes = 256 * 1024;

HttpRequest request_to(const ServerAccess& server, const std::string& method,
                       const std::string& query) {
  HttpRequest request;
  request.method = method;
  std::string base = server.url;
  while (base.ends_with('/')) base.pop_back();
  request.url = base + "/api/v1/results" + (query.empty() ? "" : "?" + query);
  request.headers.emplace_back("Authorization", "Bearer " + server.token);
  request.content_type = "application/xml";
  request.silence = std::chrono::minutes(5);  // the server answers when all runs are recorded
  return request;
}

// In the server's words where it has some.
Error error_of(const HttpResponse& response, const ServerAccess& server) {
  Error error = usage_error(fmt::format("the server answers with status {}", response.status),
                            server.url, "check the server's address and its log");
  const auto json = parse_json(response.body);
  if (!json.is_object() || !json.contains("error") || !json["error"].is_object()) return error;
  const auto take = [&](const char* name, std::string& into) {
    const auto found = json["error"].find(name);
    if (found != json["error"].end() && found->is_string())
      into = shorten(found->get<std::string>(), 1000);
  };
  take("what", error.what);
  take("where", error.where);
  take("next", error.next);
  return error;
}

bool is_for_now(int status) {
  return status >= 500 || status == 408 || status == 425 || status == 429;
}

Delivered judge(const Result<HttpResponse>& response, const ServerAccess& server) {
  Delivered delivered;
  if (!response) {
    const bool is_usage = response.error().kind == ErrorKind::usage;
    return {is_usage ? State::rejected : State::later, {}, response.error()};
  }
  if (response->status == 200) return {State::taken, {}, {}};
  delivered.state = is_for_now(response->status) ? State::later : State::rejected;
  delivered.error = error_of(*response, server);
  return delivered;
}

BodySource body_of(const ReportFile& file, ByteSource bytes) {
  auto piece = std::make_shared<std::vector<char>>(piece_bytes);
  return [&file, bytes = std::move(bytes), piece,
          hash = std::make_shared<ContentHash>()]() mutable -> Result<std::string_view> {
    const auto count = bytes(*piece);
    if (!count) return count.error();
    const std::string_view read(piece->data(), *count);
    hash->add(read);
    // Under the same name in the history there must be the same contents.
    if (read.empty() && std::move(*hash).hex() != file.hash())
      return usage_error("has changed while it was sent", file.name(), "ingest it again");
    return read;
  };
}

}  // namespace

Delivered knock(const ServerAccess& server) {
  return judge(send(request_to(server, "GET", "")), server);
}

Delivered deliver(const ReportFile& file, const Delivery& delivery, const ServerAccess& server) {
  const auto bytes = file.bytes();
  if (!bytes) return {State::rejected, {}, bytes.error()};
  HttpRequest request = request_to(server, "POST", to_query(to_fields(delivery)));
  request.source = body_of(file, *bytes);
  const auto response = send(request);
  Delivered delivered = judge(response, server);
  if (delivered.state != State::taken) return delivered;
  const auto report = report_from_json(response->body);
  if (!report) return {State::rejected, {}, report.error()};
  delivered.report = *report;
  return delivered;
}

}  // namespace unflake
