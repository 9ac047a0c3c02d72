#include "trace/code_lookup.h"

#include <fmt/format.h>

#include <algorithm>

#include "symbols/lookup.h"
#include "util/base_name.h"
#include "util/text.h"

namespace unflake {
namespace {

std::vector<uint64_t> line_beginnings(const Image& image, const SiteName& site,
                                      std::vector<std::string>& similar) {
  const LineMatch match = addresses_of_line(image, site.file, site.line);
  if (match.line == site.line && !match.addresses.empty()) return match.addresses;
  if (!match.addresses.empty()) similar.push_back(fmt::format("{}:{}", site.file, match.line));
  for (const std::string& other : match.suggestions)
    similar.push_back(fmt::format("{}:{}", other, site.line));
  return {};
}

std::vector<uint64_t> function_entries(const Image& image, const SiteName& site,
                                       std::vector<std::string>& similar) {
  const FunctionMatches match = find_functions(image, site.function);
  for (const std::string& name : match.suggestions) similar.push_back(name + "()");
  std::vector<uint64_t> entries;
  for (const Function* function : match.functions) entries.push_back(function->start + site.offset);
  return entries;
}

}  // namespace

std::vector<uint64_t> addresses_of(const Image& image, const SiteName& site,
                                   std::vector<std::string>& similar) {
  if (!site.file.empty()) return line_beginnings(image, site, similar);
  if (site.function.empty()) return {site.offset};
  std::vector<uint64_t> entries = function_entries(image, site, similar);
  if (entries.empty() && site.offset > 0 && site.function == base_name(image.path()))
    return {site.offset};
  return entries;
}

Error unknown_site(const SiteName& site, const std::vector<std::string>& known) {
  std::vector<std::string> similar = nearest(to_string(site), known, 3);
  const bool is_call = !site.api.empty();
  for (const std::string& name : known)
    if (similar.size() < 3 && (!is_call || name.starts_with(site.file + ":")) &&
        std::ranges::find(similar, name) == similar.end())
      similar.push_back(name);
  return usage_error(fmt::format("there is no site {}", to_string(site)), "",
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
