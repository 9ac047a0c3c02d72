#pragma once

#include <memory>
#include <string>

#include "store/sqlite/database.h"

namespace unflake {

// Opens or creates a history and brings it to the newest schema. A file that is not a history of
// this or an older version of unflake is refused and stays as it is, byte for byte.
std::unique_ptr<Database> open_history(const std::string& path, Duration patience);

// Opens a history of the newest schema for questions only, also where nothing can be written.
std::unique_ptr<Database> open_history_to_read(const std::string& path, Duration patience);

}  // namespace unflake
