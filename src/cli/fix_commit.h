#pragma once

#include <optional>
#include <string>

#include "cli/project.h"
#include "study/fixes.h"

namespace unflake {

// What git says that a commit changed, against its first parent. None: it is no commit of this
// repository, or there is no git.
std::optional<CommitChange> change_of_commit(const Project& project, const std::string& commit,
                                             Launcher& launcher);

}  // namespace unflake
