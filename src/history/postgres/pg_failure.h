#pragma once

#include <exception>
#include <string>
#include <utility>

#include "util/result.h"

namespace unflake {

// Thrown inside this folder only: the store's methods turn it into their Result.
struct PgFailure : std::exception {
  // Whether the same work may succeed when it is done again.
  enum class Cure { none, repeat, reconnect, wait };

  PgFailure(Error error, Cure cure) : error(std::move(error)), cure(cure) {}
  const char* what() const noexcept override { return error.what.c_str(); }
  Error error;
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
