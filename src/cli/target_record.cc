#include "cli/target_record.h"

#include "util/path_below.h"

namespace unflake {

TargetRecord record_of(const Target& target, const Test& test, const Project& project) {
  TargetRecord record{target.name, target.framework, target.path, target.argv};
  if (target.framework == Framework::command) record.name = to_string(test.id);
  if (const std::string below = path_below(target.path, project.root); !below.empty())
    record.path = below;
  return record;
}

}  // namespace unflake
