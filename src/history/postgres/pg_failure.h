#pragma once

#include <string>
#include <utility>

#include "history/attempt.h"

namespace unflake {

struct PgFailure : StoreFailure {
  // Whether the same work may succeed when it is done again.
  enum class Cure { none, repeat, reconnect, wait };

  PgFailure(Error error, Cure cure) : StoreFailure(std::move(error)), cure(cure) {}
  Cure cure;
};

// What a server, or libpq, said. `state` is the SQLSTATE, empty when no server answered.
struct PgComplaint {
  std::string state;
  std::string message;
  bool while_connecting = false;
};

// What that means for the person whose history this is. `place`: the url as it may be shown.
PgFailure explain_postgres(const PgComplaint& complaint, const std::string& place);

// Finds the SQLSTATE in a message of libpq's verbose form, and its first line without it.
PgComplaint read_complaint(const std::string& verbose_message);

}  // namespace unflake
