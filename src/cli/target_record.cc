#include "cli/target_record.h"

#include <filesystem>

namespace unflake {

TargetRecord record_of(const Target& target, const Test& test, const Project& project) {
  TargetRecord record{target.name, target.framework, target.path, target.argv};
  if (target.framework == Framework::command) record.name = to_string(test.id);
  const std::filesystem::path path(target.path);
  const std::string relative = path.lexically_relative(project.root).string();
  if (!relative.empty() && !relative.starts_with("..")) record.path = relative;
  return record;
}

}  // namespace unflake
