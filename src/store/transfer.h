#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "store/store.h"

namespace unflake {

struct ExportCount {
  int64_t sessions = 0, runs = 0, steps = 0, causes = 0;
};

// Takes one line after the other, each with its line feed; an error ends the export.
using TakeLine = std::function<Result<void>(std::string_view line)>;

// Everything that is still kept of the sessions since then, and what people did since then, as
// import_history() reads it.
Result<ExportCount> export_history(Store& store, const std::string& project, TimePoint since,
                                   const TakeLine& take);

struct BadLine {
  int64_t line = 0;
  std::string why;
};

struct ImportCount {
  int64_t sessions = 0;
  int64_t runs = 0;                // read and in the database now
  int64_t steps = 0, causes = 0;   // the same of what people did about them
  int64_t bad_lines = 0;           // left out
  std::vector<BadLine> first_bad;  // the first hundred of them
  bool cut_short = false;          // an export that lacks its end
};

// Told now and then, with the bytes that were read so far.
using ImportProgress = std::function<void(const ImportCount&, int64_t bytes)>;

// Brings the runs of a spill file or an export into the store, in batches. Importing it again
// changes nothing. What came before an error stays.
Result<ImportCount> import_history(Store& store, const std::string& path,
                                   const ImportProgress& progress = {});

}  // namespace unflake
