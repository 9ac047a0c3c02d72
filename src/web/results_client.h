#pragma once

#include <string>

#include "web/delivery.h"

namespace unflake {

struct ServerAccess {
  std::string url;    // of `unflake serve`
  std::string token;  // never shown
};

struct Delivered {
  enum class State {
    taken,
    rejected,  // for good: by the token, or by what the report is
    later,     // the server is away, or cannot at the moment
  };
  State state = State::later;
  IngestedReport report;  // of one that was taken
  Error error;            // of one that was not
};

// Whether the server is there and takes the token, before a report is sent.
Delivered knock(const ServerAccess& server);

Delivered deliver(const ReportFile& file, const Delivery& delivery, const ServerAccess& server);

}  // namespace unflake
