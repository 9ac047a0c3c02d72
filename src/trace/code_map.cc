#include "trace/code_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace unflake {
namespace {

void add_skips(const std::vector<Extent>& extents, uint32_t flag,
               std::vector<protocol::SkipRange>& skips) {
  for (const Extent& extent : extents)
    if (extent.start + extent.size <= INT32_MAX)
      skips.push_back(
          {static_cast<uint32_t>(extent.start), static_cast<uint32_t>(extent.size) | flag});
}

bool is_skipped(const std::vector<protocol::SkipRange>& skips, uint64_t address) {
  const auto next = std::ranges::upper_bound(skips, address, {}, &protocol::SkipRange::start);
  if (next == skips.begin()) return false;
  const protocol::SkipRange& range = *std::prev(next);
  return address - range.start < (range.size & ~protocol::foreign_code);
}

}  // namespace

// What is wrong with a system library is no concern of the user.
CodeMap::Known& CodeMap::known(const RawImage& image) {
  const auto [entry, is_new] = images_.try_emplace({image.path, image.build_id});
  if (!is_new) return entry->second;
  auto opened = open_(image.path);
  const bool other = opened && !image.build_id.empty() && (*opened)->build_id() != image.build_id;
  if (opened && !other) entry->second.image = std::move(*opened);
  if (!opened && image.is_project) problems_.push_back(to_string(opened.error()));
  if (other && image.is_project)
    problems_.push_back(
        fmt::format("{} was built again since it ran; run the command again", image.path));
  return entry->second;
}

const NamedCode& CodeMap::at(const RawImage& image, uint64_t address) {
  Known& code = known(image);
  const auto [entry, is_new] = code.places.try_emplace(address);
  NamedCode& place = entry->second;
  if (!is_new || !code.image) return place;
  place.frames = code.image->frames_at(address);
  const Frame* first = image.is_project ? first_project_frame(place.frames, policy_) : nullptr;
  if (first && first->file.empty() && is_skipped(skip_ranges(image), address)) first = nullptr;
  place.first_project =
      first ? static_cast<size_t>(first - place.frames.data()) : place.frames.size();
  return place;
}

std::vector<std::string> CodeMap::project_files(const RawImage& image) {
  std::vector<std::string> files;
  const Known& code = known(image);
  if (!code.image) return files;
  for (const std::string& file : code.image->files())
    if (policy_.is_project_file(file)) files.push_back(file);
  return files;
}

const std::vector<protocol::SkipRange>& CodeMap::skip_ranges(const RawImage& image) {
  Known& code = known(image);
  if (code.skips) return *code.skips;
  code.skips.emplace();
  if (!code.image) return *code.skips;
  add_skips(unflake::skip_ranges(*code.image, policy_), 0, *code.skips);
  add_skips(foreign_ranges(*code.image), protocol::foreign_code, *code.skips);
  std::ranges::sort(*code.skips, {}, &protocol::SkipRange::start);
  return *code.skips;
}

const std::vector<AssertionReporter>& CodeMap::reporters(const RawImage& image) {
  Known& code = known(image);
  if (!code.reporters)
    code.reporters =
        code.image ? assertion_reporters(*code.image) : std::vector<AssertionReporter>();
  return *code.reporters;
}

// Those of which at least the entry is not skipped.
std::vector<Function> CodeMap::project_functions(const RawImage& image) {
  std::vector<Function> functions;
  const auto& skips = skip_ranges(image);
  const Known& code = known(image);
  if (!code.image) return functions;
  for (const Function& function : code.image->functions()) {
    const auto next =
        std::ranges::upper_bound(skips, function.start, {}, &protocol::SkipRange::start);
    const bool skipped =
        next != skips.begin() &&
        function.start - std::prev(next)->start < (std::prev(next)->size & ~protocol::foreign_code);
    if (!skipped) functions.push_back(function);
  }
  return functions;
}

}  // namespace unflake
