#pragma once

#include <span>
#include <string_view>

namespace unflake {

// The files of schema/, compiled in. The n-th one brings a database from version n-1 to n; once
// released, none of them changes any more.
std::span<const std::string_view> migrations();

}  // namespace unflake
