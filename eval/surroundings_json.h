#pragma once

#include "surroundings.h"
#include "util/json.h"

namespace unflake::eval {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Surroundings, date, machine, kernel, compiler, commit,
                                   load_before, load_after, minutes)

}  // namespace unflake::eval
