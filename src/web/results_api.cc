#include "web/results_api.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include "ingest/ingest.h"
#include "ingest/report_file.h"
#include "web/delivery.h"

namespace unflake {
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
