#include "symbols/code_from.h"

#include <algorithm>
#include <unordered_map>

namespace unflake {
namespace {

class Collector {
 public:
  Collector(const Image::FileFilter& filter, const Units& units, SourceLines& lines)
      : filter_(filter), units_(units), lines_(lines) {}

  std::vector<Extent> collect() {
    units_.visit_code([&](const Unit& unit, const UnitCode& code) {
      for (const CompiledFunction& function : code.functions)
        if (units_.find(function.low) == &unit) add(code, function);
    });
    return merge_extents(std::move(extents_));
  }

 private:
  bool is_selected(Dwarf_Die die) {
    const std::optional<SourcePlace> place = lines_.declaration(&die);
    if (!place) return false;
    const auto [known, is_new] = selected_.emplace(place->file, false);
    if (is_new) known->second = filter_(lines_.file_name(place->file));
    return known->second;
  }

  void add(const UnitCode& code, const CompiledFunction& function) {
    if (!is_selected(function.die)) return;
    uint64_t from = function.low;
    for (const Extent& other : inlined_from_elsewhere(code, function)) {
      if (other.start > from) extents_.push_back({from, other.start - from});
      from = std::max(from, other.start + other.size);
    }
    if (from < function.high) extents_.push_back({from, function.high - from});
  }

  std::vector<Extent> inlined_from_elsewhere(const UnitCode& code,
                                             const CompiledFunction& function) {
    std::vector<Extent> others;
    for (uint32_t i = 0; i < function.inlined_count; ++i) {
      const InlinedCall& call = code.inlined[function.first_inlined + i];
      const uint64_t low = std::max(call.low, function.low);
      const uint64_t high = std::min(call.high, function.high);
      if (low < high && !is_selected(call.die)) others.push_back({low, high - low});
    }
    return merge_extents(std::move(others));
  }

  const Image::FileFilter& filter_;
  const Units& units_;
  SourceLines& lines_;
  std::unordered_map<uint32_t, bool> selected_;  // by file
  std::vector<Extent> extents_;
};

}  // namespace

std::vector<Extent> collect_code_from(const Image::FileFilter& filter, const Units& units,
                                      SourceLines& lines) {
  return Collector(filter, units, lines).collect();
}

std::vector<Extent> merge_extents(std::vector<Extent> extents) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.start < b.start; });
  std::vector<Extent> merged;
  for (const Extent& extent : extents) {
    if (merged.empty() || extent.start > merged.back().start + merged.back().size) {
      merged.push_back(extent);
      continue;
    }
    Extent& last = merged.back();
    last.size = std::max(last.start + last.size, extent.start + extent.size) - last.start;
  }
  return merged;
}

}  // namespace unflake
