#include "trace/site_book.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/base_name.h"

namespace unflake {
namespace {

const Frame* frame_that_names(const NamedCode& place) {
  if (place.project()) return place.project();
  return place.frames.empty() ? nullptr : &place.frames.front();
}

// The function that the linker sees, and the calls through which the line was inlined into it.
std::string copy_of(const RawImage& image, const NamedCode& place) {
  std::string copy = image.path;
  if (place.frames.empty()) return copy;
  const size_t named = place.project() ? place.first_project : 0;
  copy += fmt::format("\n{:x}", place.frames[named].function_start);
  for (size_t i = named + 1; i < place.frames.size(); ++i)
    copy += fmt::format("\n{}:{}", place.frames[i].file, place.frames[i].line);
  return copy;
}

}  // namespace

SiteName SiteBook::name_place(const RawImage& image, const NamedCode& place, uint64_t address) {
  SiteName name;
  const Frame* frame = frame_that_names(place);
  if (!frame || (frame->function.empty() && frame->file.empty())) {
    name.function = base_name(image.path);
    name.offset = address;
    return name;
  }
  if (image.path != own_executable_) name.image = base_name(image.path);
  name.function = frame->function;
  if (frame->file.empty() || frame->line <= 0) {
    name.offset = address - frame->function_start;
  } else {
    name.file = files_.short_name(frame->file);
    name.line = frame->line;
  }
  return name;
}

const LearnedSite& SiteBook::learn_call(const RawImage& image, const NamedCode& place,
                                        uint64_t return_address, uint16_t api) {
  SiteName name = name_place(image, place, return_address);
  name.api = protocol::api_facts[api].name;
  const CodeAddress address{image.path, return_address};
  auto& copy = copies_[{to_string(name), copy_of(image, place)}];
  const auto known = std::ranges::find(copy, address);
  name.nth = static_cast<int>(known - copy.begin()) + 1;
  if (known == copy.end()) copy.push_back(address);
  LearnedSite& site = sites_.try_emplace(to_string(name), LearnedSite{name, api, {}}).first->second;
  if (std::ranges::find(site.addresses, address) == site.addresses.end())
    site.addresses.push_back(address);
  return site;
}

const LearnedSite* SiteBook::find(const SiteName& name) const {
  const auto found = sites_.find(to_string(name));
  return found == sites_.end() ? nullptr : &found->second;
}

std::vector<std::string> SiteBook::names() const {
  std::vector<std::string> names;
  for (const auto& [name, site] : sites_) names.push_back(name);
  return names;
}

}  // namespace unflake
