#include "trace/code_lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "symbols/demangle.h"
#include "util/text.h"

namespace unflake {
namespace {

bool is_named(const std::string& whole, const std::string& wanted, std::string_view divider) {
  if (!whole.ends_with(wanted)) return false;
  const std::string_view before = std::string_view(whole).substr(0, whole.size() - wanted.size());
  return before.empty() || before.ends_with(divider);
}

const Function* function_at(const Image& image, uint64_t address) {
  const auto functions = image.functions();
  const auto next = std::ranges::upper_bound(functions, address, {}, &Function::start);
  if (next == functions.begin()) return nullptr;
  const Function& found = *std::prev(next);
  return address - found.start < found.size ? &found : nullptr;
}

// The first instruction of a line in each function that has code of it: where the line begins,
// rather than every place that it goes on at.
std::vector<uint64_t> line_beginnings(const Image& image, const SiteName& site,
                                      std::vector<std::string>& similar) {
  std::vector<bool> wanted;
  for (const std::string& file : image.files()) wanted.push_back(is_named(file, site.file, "/"));
  std::map<uint64_t, uint64_t> first_of;  // function -> address
  for (const LineRow& row : image.lines()) {
    if (row.file >= wanted.size() || !wanted[row.file]) continue;
    if (row.line != site.line) {
      if (std::abs(row.line - site.line) <= 3)
        similar.push_back(fmt::format("{}:{}", site.file, row.line));
      continue;
    }
    const Function* function = function_at(image, row.address);
    first_of.try_emplace(function ? function->start : row.address, row.address);
  }
  std::vector<uint64_t> addresses;
  for (const auto& [function, address] : first_of) addresses.push_back(address);
  return addresses;
}

std::vector<uint64_t> function_entries(const Image& image, const SiteName& site,
                                       std::vector<std::string>& similar) {
  std::vector<uint64_t> entries;
  std::vector<std::string> names;
  for (const Function& function : image.functions()) {
    if (function.name.empty()) continue;
    std::string name = qualified_name(function.name);
    if (name == site.function || is_named(name, site.function, "::"))
      entries.push_back(function.start + site.offset);
    else
      names.push_back(std::move(name));
  }
  if (entries.empty())
    for (const std::string& name : nearest(site.function, names, 3)) similar.push_back(name + "()");
  return entries;
}

}  // namespace

std::vector<uint64_t> addresses_of(const Image& image, const SiteName& site,
                                   std::vector<std::string>& similar) {
  if (!site.file.empty()) return line_beginnings(image, site, similar);
  if (site.function.empty()) return {site.offset};
  return function_entries(image, site, similar);
}

Error unknown_site(const SiteName& site, const std::vector<std::string>& known) {
  std::vector<std::string> similar = nearest(to_string(site), known, 3);
  for (const std::string& name : known)
    if (similar.size() < 3 && !site.file.empty() && name.starts_with(site.file + ":") &&
        std::ranges::find(similar, name) == similar.end())
      similar.push_back(name);
  return usage_error(fmt::format("no run has shown a site {}", to_string(site)), "",
                     similar.empty() ? "`unflake trace` shows the sites of a test"
                                     : "did you mean " + join(similar, ", or ") + "?");
}

std::vector<std::string> timing_groups() {
  std::vector<std::string> names;
  for (const protocol::ApiFacts& api : protocol::api_facts)
    if (std::ranges::find(names, api.group_name) == names.end()) names.emplace_back(api.group_name);
  return names;
}

Result<protocol::Group> timing_group(const std::string& name) {
  for (const protocol::ApiFacts& api : protocol::api_facts)
    if (api.group_name == name) return api.group;
  return usage_error(fmt::format("there is no group '{}' of timing APIs", printable(name)), "",
                     "choose from " + join(timing_groups(), ", "));
}

}  // namespace unflake
