#include "trace/code_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace unflake {

// What is wrong with a system library is no concern of the user.
CodeMap::Known& CodeMap::known(const RawImage& image) {
  const auto [entry, is_new] = images_.try_emplace({image.path, image.build_id});
  if (!is_new) return entry->second;
  auto opened = open(image.path);
  const bool other = opened && !image.build_id.empty() && (*opened)->build_id() != image.build_id;
  if (opened && !other) entry->second.image = std::move(*opened);
  if (!opened && image.is_project) problems_.push_back(to_string(opened.error()));
  if (other && image.is_project)
    problems_.push_back(
        fmt::format("{} was built again since it ran; run the command again", image.path));
  return entry->second;
}

std::vector<std::string> CodeMap::project_files(const RawImage& image) {
  std::vector<std::string> files;
  const Known& code = known(image);
  if (!code.image) return files;
  for (const std::string& file : code.image->files()) {
    Frame frame;
    frame.file = file;
    if (is_project(image.path, frame)) files.push_back(file);
  }
  return files;
}

const CodePlace& CodeMap::at(const RawImage& image, uint64_t address) {
  Known& code = known(image);
  const auto [entry, is_new] = code.places.try_emplace(address);
  CodePlace& place = entry->second;
  if (!is_new || !code.image) return place;
  place.frames = code.image->frames_at(address);
  place.first_project = static_cast<size_t>(
      std::ranges::find_if(place.frames,
                           [&](const Frame& frame) { return is_project(image.path, frame); }) -
      place.frames.begin());
  return place;
}

}  // namespace unflake
