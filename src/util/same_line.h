#pragma once

#include "util/base_name.h"

namespace unflake {

// Of anything that has a file and a line. Folders differ between machines and build trees.
template <class Place, class OtherPlace>
bool is_same_line(const Place& a, const OtherPlace& b) {
  return a.line == b.line && base_name(a.file) == base_name(b.file);
}

}  // namespace unflake
