#pragma once

#include <string>
#include <string_view>

#include "model/repro.h"
#include "util/result.h"

namespace unflake {

inline constexpr int repro_format = 1;
inline constexpr size_t largest_repro = 4 << 20;  // bytes of a file

// As docs/formats.md describes it. Threads are written by name only: what the agent knows them by
// is not the same after a rebuild, and relocation.h finds it again.
std::string repro_json(const Repro& repro);

// The file may come from anybody. An error says what is wrong, at which member, and what to do.
Result<Repro> parse_repro(std::string_view text, const std::string& path_for_errors);

// The name of the thread or of the class of threads that an intervention is for.
std::string thread_text(const Intervention& intervention);

}  // namespace unflake
