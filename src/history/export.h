#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "history/store.h"

namespace unflake {

struct ExportCount {
  int64_t sessions = 0, runs = 0, events = 0, causes = 0;
};

// Takes one line after the other, each with its line feed; an error ends the export.
using TakeLine = std::function<Result<void>(std::string_view line)>;

// Everything that is still kept of the sessions since then, and what people did since then, as
// import_history() reads it.
Result<ExportCount> export_history(Store& store, const std::string& project, TimePoint since,
                                   const TakeLine& take);

}  // namespace unflake
