#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace unflake {

// The files of schema/, compiled in. The n-th one brings a database from version n-1 to n; once
// released, none of them changes any more.
std::span<const std::string_view> migration_scripts();

enum class Dialect { sqlite, postgres };

size_t newest_schema();

// The script that leads to a version from the one before it. The files are written for SQLite.
// Where the databases must differ, a line `-- only sqlite` or `-- only postgres` begins what is for
// one of them, up to the next such line or to `-- both`.
std::string migration(size_t version, Dialect dialect);

// What migration() does to a file's text.
std::string in_dialect(std::string_view script, Dialect dialect);

}  // namespace unflake
