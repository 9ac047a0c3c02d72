#pragma once

#include <functional>
#include <string>

#include "store/store.h"
#include "web/http_server.h"

namespace unflake {

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
