#include "util/project_root.h"

#include <filesystem>

namespace unflake {

namespace fs = std::filesystem;

std::string project_root() {
  std::error_code failed;
  const fs::path here = fs::current_path(failed);
  return failed ? "" : project_root_of(here.string());
}

std::string project_root_of(const std::string& folder) {
  std::error_code ignored;
  for (fs::path above = folder; !above.empty(); above = above.parent_path()) {
    if (fs::exists(above / ".unflake", ignored) || fs::exists(above / ".git", ignored))
      return above.string();
    if (above == above.parent_path()) break;
  }
  return folder;
}

}  // namespace unflake
