#pragma once

#include "cli/project.h"
#include "store/store.h"
#include "suite/adapter.h"

namespace unflake {

// How the target of a test is found again. A plain command is known by its whole id, any other
// target by its name; a path inside the project is kept relative to it.
TargetRecord record_of(const Target& target, const Test& test, const Project& project);

}  // namespace unflake
