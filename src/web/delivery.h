#pragma once

#include <map>
#include <string>

#include "ingest/ingest.h"

namespace unflake {

// What goes along with a report to a server, and what the server answers. docs/formats.md has the
// names.
struct Delivery {
  IngestSettings settings;
  std::string project;  // in the server's history; empty: the server's own
};

using QueryFields = std::map<std::string, std::string>;

QueryFields to_fields(const Delivery& delivery);
Delivery delivery_from(const QueryFields& fields);

// "a=b&c=d", escaped.
std::string to_query(const QueryFields& fields);

// An answer, and the line that an ingestion prints. `incomplete` is why the rest was not read.
std::string to_json(const IngestedReport& report);
Result<IngestedReport> report_from_json(const std::string& text);

std::string to_json(const Error& error);

}  // namespace unflake
