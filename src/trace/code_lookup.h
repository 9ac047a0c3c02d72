#pragma once

#include <string>
#include <vector>

#include "model/site.h"
#include "protocol/agent_protocol.h"
#include "symbols/image.h"

namespace unflake {

// Where a line begins or a function is entered, in every copy of it that the image has. Adds to
// `similar` what the user may have meant when there is nothing.
std::vector<uint64_t> addresses_of(const Image& image, const SiteName& site,
                                   std::vector<std::string>& similar);

Error unknown_site(const SiteName& site, const std::vector<std::string>& known);

Result<protocol::Group> timing_group(const std::string& name);
std::vector<std::string> timing_groups();

}  // namespace unflake
