#pragma once

#include <string>

#include "history/attempt.h"

namespace unflake {

struct DatabaseFailure : StoreFailure {
  using StoreFailure::StoreFailure;
};

// What SQLite's extended result code means for the person whose history this is.
Error explain_sqlite(int code, int system_errno, const std::string& detail,
                     const std::string& path);

}  // namespace unflake
