#pragma once

#include <string>

namespace unflake {

// The part of a path behind its last slash; the whole of it when there is none.
inline std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace unflake
