#pragma once

#include <string>

#include "model/site.h"

namespace unflake {

inline SiteName call_site(const std::string& file, int line, const std::string& api) {
  SiteName site;
  site.file = file;
  site.line = line;
  site.api = api;
  return site;
}

inline SiteName entry_site(const std::string& function) {
  SiteName site;
  site.function = function;
  return site;
}

}  // namespace unflake
