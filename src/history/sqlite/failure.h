#pragma once

#include <exception>
#include <string>
#include <utility>

#include "util/result.h"

namespace unflake {

// Thrown inside this folder only: the store's methods turn it into their Result.
struct DatabaseFailure : std::exception {
  explicit DatabaseFailure(Error error) : error(std::move(error)) {}
  const char* what() const noexcept override { return error.what.c_str(); }
  Error error;
};

// What SQLite's extended result code means for the person whose history this is.
Error explain_sqlite(int code, int system_errno, const std::string& detail,
                     const std::string& path);

}  // namespace unflake
