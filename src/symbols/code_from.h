#pragma once

#include <vector>

#include "symbols/image.h"
#include "symbols/source_lines.h"

namespace unflake {

std::vector<Extent> collect_code_from(const Image::FileFilter& filter, const Units& units,
                                      SourceLines& lines);

// Ordered, with overlapping and adjacent ones joined.
std::vector<Extent> merge_extents(std::vector<Extent> extents);

}  // namespace unflake
