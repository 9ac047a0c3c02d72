#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ingest/ingest.h"

namespace unflake {

// What is sent with a report to a server, and what the server answers. docs/formats.md has the
// names.
struct Delivery {
  IngestSettings settings;
  std::string project;  // in the server's history; empty: the server's own
};

using QueryFields = std::map<std::string, std::string>;

QueryFields to_fields(const Delivery& delivery);
Delivery delivery_from(const QueryFields& fields);

struct ServerAccess {
  std::string url;    // of `unflake serve`
  std::string token;  // never shown
};

struct Delivered {
  enum class State {
    taken,
    rejected,  // permanently: by the token, or by what the report is
    later,     // the server is down, or cannot right now
  };
  State state = State::later;
  IngestedReport report;  // of one that was accepted
  Error error;            // of one that was not
};

// Whether the server is up and accepts the token, before a report is sent.
Delivered knock(const ServerAccess& server);

Delivered deliver(const ReportFile& file, const Delivery& delivery, const ServerAccess& server);

// Reports that could not be delivered, on disk until they are. Each is a copy of the report and,
// written last, what is sent with it; the token is not kept.
class Outbox {
 public:
  explicit Outbox(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }

  // Safe on disk when it returns. The same report is kept once, however often it is added.
  Result<void> keep(const ReportFile& file, const Delivery& delivery, const std::string& server);

  struct Flushed {
    int64_t delivered = 0, left = 0;
    int64_t elsewhere = 0;        // for other servers
    bool is_busy = false;         // another process is sending them
    std::vector<Error> problems;  // one for each report that was rejected, and is put aside
  };
  using Send = std::function<Delivered(const ReportFile& file, const Delivery& delivery)>;
  // Sends what waits for this server, oldest first, until one has to wait again.
  Result<Flushed> flush(const std::string& server, const Send& send);

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string folder_;
};

// In the first of the folders for such things that can be made.
std::string default_outbox_folder();

// "a=b&c=d", escaped.
std::string to_query(const QueryFields& fields);

// An answer, and the line that an ingestion prints. `incomplete` is why the rest was not read.
std::string to_json(const IngestedReport& report);
Result<IngestedReport> report_from_json(const std::string& text);

std::string to_json(const Error& error);

}  // namespace unflake
